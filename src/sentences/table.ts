/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

/**
 * What a code comes with.
 */
export type Params = Record<string, unknown>;

/**
 * One code in words; a person's language comes first.
 */
export type Sentence = (trans: TranslationBundle, params: Params) => string;

/**
 * The server speaks in codes; a table has what each is called in words.
 */
export type Sentences = Readonly<Record<string, Sentence>>;

/**
 * The sentence for a code, from the first table that knows it, or null.
 */
export function sentenceIn(
  tables: readonly Sentences[],
  code: string,
  params: Params,
  trans: TranslationBundle
): string | null {
  const table = tables.find(known => Object.hasOwn(known, code));
  return table ? table[code](trans, params) : null;
}

/** A parameter as text; a question mark where it was not given. */
export function given(params: Params, name: string): string {
  const value = params[name];
  return typeof value === 'string' || typeof value === 'number'
    ? String(value)
    : '?';
}

/** A sentence of ours, and the owner's own words, which are shown as they are. */
export function detailed(
  sentence: string,
  params: Params,
  trans: TranslationBundle
): string {
  const detail = text(params.detail);
  return detail
    ? trans.__('%1 The platform says: "%2"', sentence, detail)
    : sentence;
}

/** A parameter that is a text with something in it, or null. */
export function text(value: unknown): string | null {
  return typeof value === 'string' && value ? value : null;
}

/** A parameter that is a list, as one text, or null. */
export function names(value: unknown): string | null {
  return Array.isArray(value) && value.length > 0 ? value.join(', ') : null;
}

/** A parameter that is a number, or null. */
export function number(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

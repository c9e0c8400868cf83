/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/**
 * A size for people: `1.5 MiB`.
 *
 * @param bytes - the size in bytes.
 * @param locale - a BCP 47 language tag.
 */
export function formatBytes(bytes: number, locale?: string): string {
  let value = Math.max(0, bytes);
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  const text = value.toLocaleString(locale, {
    maximumFractionDigits: digits
  });
  return `${text} ${UNITS[unit]}`;
}

/**
 * A size that may be unknown or only a lower bound.
 */
export function formatSize(
  bytes: number | null,
  complete: boolean,
  trans: TranslationBundle
): string {
  if (bytes === null) {
    return trans.__('size unknown');
  }
  const size = formatBytes(bytes, localeOf(trans));
  return complete ? size : trans.__('at least %1', size);
}

/**
 * A duration for people: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`.
 *
 * @param seconds - the duration in seconds.
 */
export function formatDuration(
  seconds: number,
  trans: TranslationBundle
): string {
  const value = Math.max(0, seconds);
  if (value < 10) {
    return trans.__(
      '%1 s',
      value.toLocaleString(localeOf(trans), { maximumFractionDigits: 1 })
    );
  }
  const whole = Math.round(value);
  if (whole < 60) {
    return trans.__('%1 s', whole);
  }
  if (whole < 3600) {
    return trans.__('%1 min %2 s', Math.floor(whole / 60), whole % 60);
  }
  if (whole < 86400) {
    return trans.__(
      '%1 h %2 min',
      Math.floor(whole / 3600),
      Math.floor((whole % 3600) / 60)
    );
  }
  return trans.__(
    '%1 d %2 h',
    Math.floor(whole / 86400),
    Math.floor((whole % 86400) / 3600)
  );
}

/**
 * A point in time for people, in their own time zone.
 *
 * @param value - RFC 3339.
 */
export function formatTime(value: string, locale?: string): string {
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) {
    return value;
  }
  return date.toLocaleString(locale, {
    dateStyle: 'medium',
    timeStyle: 'short'
  });
}

/**
 * The language tag of a translation bundle, as `Intl` wants it; undefined for the browser's own.
 */
export function localeOf(trans: TranslationBundle): string | undefined {
  const locale = (trans as { locale?: unknown }).locale;
  if (typeof locale !== 'string' || !locale) {
    return undefined;
  }
  const tag = locale.replace('_', '-');
  try {
    return Intl.getCanonicalLocales(tag)[0];
  } catch {
    return undefined;
  }
}

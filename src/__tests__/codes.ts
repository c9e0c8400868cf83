/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import * as fs from 'fs';
import * as path from 'path';

const PACKAGE = path.resolve(__dirname, '..', '..', 'jupyter_pause');

/**
 * The keys of a Python dictionary of codes.
 */
export function codesOf(file: string, name: string): string[] {
  const text = fs.readFileSync(path.join(PACKAGE, file), 'utf8');
  const start = text.search(new RegExp(`^${name}\\b`, 'm'));
  const body = text.slice(start, text.indexOf('\n}', start));
  return Array.from(body.matchAll(/^ {4}"(\w+)":/gm), match => match[1]);
}

/**
 * The codes of reasons and checks that a file makes.
 */
export function reasonsIn(file: string): string[] {
  const text = fs.readFileSync(path.join(PACKAGE, file), 'utf8');
  const found = text.matchAll(/(?:Reason\(code=|Check\()"(\w+)"/g);
  return Array.from(new Set(Array.from(found, match => match[1])));
}

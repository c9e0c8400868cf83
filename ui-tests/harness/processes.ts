/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { readdirSync, readFileSync } from 'node:fs';

/**
 * What the system itself says about processes; nothing here asks the product.
 */

/**
 * Whether a process is there. One that ended and was not collected yet is not.
 */
export function isAlive(pid: number): boolean {
  const status = read(`/proc/${pid}/status`);
  return status !== null && !/^State:\s+[ZX]/m.test(status);
}

/**
 * Resident memory in bytes; 0 when the process is not there.
 */
export function residentBytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`) ?? '');
  return match ? Number(match[1]) * 1024 : 0;
}

/**
 * Processes whose command line names a text, e.g. the kernels of a server by its folder.
 */
export function processesNaming(text: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(
      pid =>
        pid !== process.pid &&
        (read(`/proc/${pid}/cmdline`) ?? '').includes(text) &&
        isAlive(pid)
    );
}

/**
 * Wait for something to become true.
 *
 * @param what - said when it did not.
 * @param limit - milliseconds; generous, it decides nothing.
 */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limit = 120000
): Promise<void> {
  const end = Date.now() + limit;
  while (!(await condition())) {
    if (Date.now() > end) {
      throw new Error(`It did not happen within ${limit / 1000} s: ${what}`);
    }
    await new Promise(resolve => setTimeout(resolve, 100));
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

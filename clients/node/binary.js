// The binary: that of the package of this platform, or the one that PINTLE_BINARY names.

import { accessSync, constants, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

/** An error of one line: what went wrong, and what to do. */
export class PintleError extends Error {}

/** The version of the package, which is that of its binary. */
export const version = JSON.parse(readFileSync(new URL('./package.json', import.meta.url), 'utf8')).version;

/** The path of the binary. */
export function find() {
  const named = process.env.PINTLE_BINARY;
  if (named) {
    try {
      accessSync(named, constants.X_OK);
    } catch {
      throw new PintleError(`PINTLE_BINARY names ${named}, which is no program: correct or unset it`);
    }
    return resolve(named);
  }
  const platform = `${process.platform}-${process.arch}`;
  try {
    return createRequire(import.meta.url).resolve(`pintle-server-${platform}/pintle`);
  } catch {
    const remedy = `npm install pintle-server-${platform}@${version}, or name a binary of that version in PINTLE_BINARY`;
    throw new PintleError(`there is no binary of pintle-server for ${platform}: ${remedy}`);
  }
}

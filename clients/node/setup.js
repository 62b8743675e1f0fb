// The global set-up of vitest and of jest: names the test run, and keeps its server between test files.

import { randomUUID } from 'node:crypto';
import { start } from './index.js';

export default async function setup() {
  process.env.PINTLE_RUN ??= randomUUID();
  const server = await start();
  // vitest calls it at the end; with jest, the end of the process is enough
  return () => server.stop();
}

// A workspace for each test of a runner.

import { start } from './index.js';

/** A workspace, which is a fork of the template if there is one, with `end`: it is called with the title of the test if that has failed. */
export async function begin(key, build, place) {
  const server = await start();
  const logSize = server.logSize();
  const workspace = build ? await (await server.template(key, build, place)).fork() : await server.workspace();
  const end = async (failed) => {
    if (failed === undefined) return workspace.delete();
    console.error(`workspace of "${failed}": KUBECONFIG=${workspace.kubeconfig()} kubectl api-resources`);
    const changes = await workspace.changes().catch((error) => `cannot be listed: ${error.message}`);
    if (changes) console.error(`what differs from the beginning of the workspace:\n${changes}`);
    const log = server.logSince(logSize).trim();
    if (log) console.error(`log of the Pintle server:\n${log}`);
  };
  return { workspace, end };
}

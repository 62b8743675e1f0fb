// Tests of vitest with a workspace each: `test('…', async ({ workspace }) => …)`.

import { test as base } from 'vitest';
import { start } from './index.js';

/** A `test` whose workspaces are forks of what `build` has made; it is called once in a test run. `key` names the template. */
export function withTemplate(key, build) {
  return base.extend({
    workspace: async ({ task }, use) => {
      const server = await start();
      const workspace = build ? await (await server.template(key, build)).fork() : await server.workspace();
      await use(workspace);
      if (task.result?.state === 'fail') console.error(`workspace of "${task.name}": KUBECONFIG=${workspace.kubeconfig()} kubectl api-resources`);
      else await workspace.delete();
    },
  });
}

/** A `test` with empty workspaces. */
export const test = withTemplate();

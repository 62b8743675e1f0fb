// Tests of vitest with a workspace each: `test('…', async ({ workspace }) => …)`.

import { test as base } from 'vitest';

import { caller } from './index.js';
import { begin } from './workspaces.js';

// they get what a test is extended with
export { afterEach, beforeEach } from 'vitest';

/** A `test` whose workspaces are forks of what `build` has made; it is called once in a test run. `key` names the template. */
export function withTemplate(key, build) {
  const place = caller();
  return base.extend({
    workspace: async ({ task }, use) => {
      const { workspace, end } = await begin(key, build, place);
      await use(workspace);
      await end(task.result?.state === 'fail' ? task.name : undefined);
    },
  });
}

/** A `test` with empty workspaces. */
export const test = withTemplate();

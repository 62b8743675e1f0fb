// Tests of Jest and of Bun with a workspace each: `test('…', async ({ workspace }) => …)`.

// Bun has it without a package
import { test as base } from '@jest/globals';
import { begin } from './workspaces.js';

/** A `test` whose workspaces are forks of what `build` has made; it is called once in a test run. `key` names the template. */
export function withTemplate(key, build) {
  return (title, body, limit) => {
    const own = async () => {
      const { workspace, end } = await begin(key, build);
      try {
        await body({ workspace });
      } catch (error) {
        await end(title);
        throw error;
      }
      await end();
    };
    return base(title, own, limit);
  };
}

/** A `test` with empty workspaces. */
export const test = withTemplate();

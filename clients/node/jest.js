// Tests of Jest and of Bun with a workspace each: `test('…', async ({ workspace }) => …)`.

// Bun has it without a package
import { test as base } from '@jest/globals';
import { caller } from './index.js';
import { begin } from './workspaces.js';

/** A `test` whose workspaces are forks of what `build` has made; it is called once in a test run. `key` names the template. */
export function withTemplate(key, build) {
  const place = caller();
  // Bodies take the values of their row as a rest, since runners count parameters to find callbacks.
  const own =
    (title, body) =>
    async (...row) => {
      const { workspace, end } = await begin(key, build, place);
      try {
        await body({ workspace }, ...row);
      } catch (error) {
        await end(title);
        throw error;
      }
      await end();
    };
  const declaring = (register) => {
    const declare = (title, body, limit) => register(title, own(title, body), limit);
    if (register.each) declare.each = (rows) => (title, body, limit) => register.each(rows)(title, own(title, body), limit);
    return declare;
  };
  const test = declaring(base);
  // read when used: Bun throws at the mention of `only` where CI is set
  for (const modifier of ['only', 'skip', 'failing']) Object.defineProperty(test, modifier, { get: () => base[modifier] && declaring(base[modifier]) });
  test.todo = (title) => base.todo(title);
  return test;
}

/** A `test` with empty workspaces. */
export const test = withTemplate();

// Tests of Jest and of Bun with a workspace each: `test('…', async ({ workspace }) => …)`.

// Bun has it without a package
import { afterEach as afterBase, beforeEach as beforeBase, test as base } from '@jest/globals';
import { caller } from './index.js';
import { begin } from './workspaces.js';

// Hooks of the test that comes next: those of the runner put them here, in their order and for the tests of their `describe`.
let before = [];
let after = [];

const hook = (add) => (body) => {
  beforeBase(() => void add(body));
  // a test that is not one of this module leaves them
  afterBase(() => void ([before, after] = [[], []]));
};

/** Runs the body before each test of this module in the same `describe`, with the workspace of the test. */
export const beforeEach = hook((body) => before.push(body));

/** Runs the body after each test of this module in the same `describe`, also if that fails, while the workspace is there. */
export const afterEach = hook((body) => after.unshift(body));

async function run(workspace, body, row) {
  const [first, last] = [before, after];
  [before, after] = [[], []];
  try {
    for (const hook of first) await hook({ workspace });
    await body({ workspace }, ...row);
  } finally {
    for (const hook of last) await hook({ workspace });
  }
}

/** A `test` whose workspaces are forks of what `build` has made; it is called once in a test run. `key` names the template. */
export function withTemplate(key, build) {
  const place = caller();
  // Bodies take the values of their row as a rest, since runners count parameters to find callbacks.
  const own =
    (title, body) =>
    async (...row) => {
      const { workspace, end } = await begin(key, build, place);
      try {
        await run(workspace, body, row);
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

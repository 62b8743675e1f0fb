// Hooks with the workspace of the test; runners.test.mjs counts the tests.

import { describe, expect, test as own } from '@jest/globals';
import { afterEach, beforeEach, test } from 'pintle-server/jest';

const maps = '/api/v1/namespaces/default/configmaps';
const create = (workspace, name) => workspace.request('POST', maps, { metadata: { name } });
const names = async (workspace) => (await workspace.request('GET', maps)).items.map(({ metadata }) => metadata.name).sort();
const ended = [];

beforeEach(({ workspace }) => create(workspace, 'outer'));
afterEach(async ({ workspace }) => void ended.push(await names(workspace)));

describe('inner', () => {
  beforeEach(({ workspace }) => create(workspace, 'inner'));
  afterEach(({ workspace }) => workspace.request('DELETE', `${maps}/inner`));

  test('has both', async ({ workspace }) => expect(await names(workspace)).toEqual(['inner', 'outer']));
  own('of the runner', () => {});
});

test('has one', async ({ workspace }) => {
  expect(await names(workspace)).toEqual(['outer']);
  // the hooks of the inner test ran before those of the outer one
  expect(ended).toEqual([['outer']]);
});

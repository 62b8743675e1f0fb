// Hooks of vitest with the workspace of the test; tests/run runs them beside the example.

import { afterEach, beforeEach, test } from 'pintle-server/vitest';
import { describe, expect } from 'vitest';

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
});

test('has one', async ({ workspace }) => {
  expect(await names(workspace)).toEqual(['outer']);
  expect(ended).toEqual([['outer']]);
});

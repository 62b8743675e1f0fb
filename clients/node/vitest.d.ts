import type { TestAPI } from 'vitest';
import type { Build, Workspace } from './index.js';

/** A body that destructures its argument gets the workspace of the test. */
export function beforeEach(body: (context: { workspace: Workspace }) => unknown, timeout?: number): void;

/** A body that destructures its argument gets the workspace of the test. */
export function afterEach(body: (context: { workspace: Workspace }) => unknown, timeout?: number): void;

/** A `test` whose workspaces are forks of what `build` has made; it is called once in a test run. `key` names the template. */
export function withTemplate(key: string, build: Build): TestAPI<{ workspace: Workspace }>;

/** A `test` with empty workspaces. */
export const test: TestAPI<{ workspace: Workspace }>;

import type { TestAPI } from 'vitest';
import type { Build, Workspace } from './index.js';

/** A `test` whose workspaces are forks of what `build` has made; it is called once in a test run. `key` names the template. */
export function withTemplate(key: string, build: Build): TestAPI<{ workspace: Workspace }>;

/** A `test` with empty workspaces. */
export const test: TestAPI<{ workspace: Workspace }>;

import type { Build, Workspace } from './index.js';

export type Body = (context: { workspace: Workspace }) => unknown;
export type EachBody<Row extends readonly unknown[]> = (context: { workspace: Workspace }, ...row: Row) => unknown;

/** Declares tests, as the `test` of Jest and Bun does. */
export interface Declare {
  (title: string, body: Body, timeout?: number): void;
  /** Declares a test for each row. The body gets the values of its row after the workspace. */
  each<Row extends readonly unknown[]>(rows: readonly Row[]): (title: string, body: EachBody<Row>, timeout?: number) => void;
  each<Value>(values: readonly Value[]): (title: string, body: EachBody<[Value]>, timeout?: number) => void;
}

export interface Test extends Declare {
  only: Declare;
  skip: Declare;
  failing: (title: string, body: Body, timeout?: number) => void;
  todo(title: string): void;
}

/** Runs the body before each test of this module in the same `describe`, with the workspace of the test. */
export function beforeEach(body: Body): void;

/** Runs the body after each test of this module in the same `describe`, also if that fails, while the workspace is there. */
export function afterEach(body: Body): void;

/** A `test` whose workspaces are forks of what `build` has made; it is called once in a test run. `key` names the template. */
export function withTemplate(key: string, build: Build): Test;

/** A `test` with empty workspaces. */
export const test: Test;

/** Names the test run, and keeps its server between test files. Returns what ends it. */
export default function setup(): Promise<() => void>;

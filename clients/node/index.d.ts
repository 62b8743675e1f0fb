// Types of pintle-server.

import type { KubeConfig } from '@kubernetes/client-node';

/** An error of one line: what went wrong, and what to do. */
export class PintleError extends Error {}

/** An error that the API has returned. */
export class ResponseError extends PintleError {
  constructor(code: number, message: string);
  /** The status code of HTTP. */
  readonly code: number;
}

export interface StartOptions {
  /** Flags of `pintle serve`. Processes that pass different flags get different servers. */
  flags?: readonly string[];
  /** The name of the test run, whose processes share a server. The default is PINTLE_RUN. */
  run?: string;
}

/** Starts the server of this test run, unless it runs. */
export function start(options?: StartOptions): Promise<Server>;

/** An object of the API. */
export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; [field: string]: unknown };
  [field: string]: any;
}

/** Fields of the specification of a workspace; see `pintle workspace create --help`. */
export interface WorkspaceSpec {
  from?: { workspace: string; resourceVersion?: string; origin?: boolean };
  template?: boolean;
  ttl?: string | null;
  [field: string]: unknown;
}

/** What to build a template from: it gets a new workspace. */
export type Build = (workspace: Workspace) => unknown;

export class Server {
  private constructor();
  readonly url: string;
  readonly version: string;
  readonly pid: number;
  /** The path of the log, if there is one. */
  readonly log?: string;
  readonly credentials: Credentials;
  /** Creates a workspace, which is empty unless `spec` says otherwise. */
  workspace(name?: string, spec?: WorkspaceSpec): Promise<Workspace>;
  /**
   * Returns the template of a key. The first process that asks for it calls `build`; the others wait. The file that calls this is part
   * of the key, so that two files may use one name.
   */
  template(key: string, build: Build): Promise<Workspace>;
  /** Sends a request to the API outside of workspaces, and returns the decoded response. */
  request(method: string, path: string, body?: unknown, contentType?: string): Promise<any>;
  /** The path of a kubeconfig for the API outside of workspaces. */
  kubeconfig(): string;
  /** Returns all that the server has logged. */
  logged(): string;
  /** The length of the log until now, for `logSince`. */
  logSize(): number;
  /** Returns what the server has logged since then. */
  logSince(size: number): string;
  /** Ends the use by this process. The server ends with its last user. */
  stop(): void;
}

/** PEM texts. */
export interface Credentials {
  ca: string;
  cert: string;
  key: string;
}

export class Workspace {
  private constructor();
  readonly server: Server;
  readonly name: string;
  readonly url: string;
  readonly clock: Clock;
  /** Sends a request to the API of the workspace, and returns the decoded response. Errors of the API are `ResponseError`. */
  request(method: string, path: string, body?: unknown, contentType?: string): Promise<any>;
  /** Sends a merge patch of the object that stands for the workspace. */
  patch(patch: object): Promise<KubernetesObject>;
  /** Creates a workspace that begins with everything in this one. */
  fork(name?: string, spec?: WorkspaceSpec): Promise<Workspace>;
  /** Puts the workspace back to what it began as. Its watches end. */
  reset(): Promise<void>;
  /** Deletes the workspace, with all that is in it. */
  delete(): Promise<void>;
  /** Makes requests or events of this workspace fail. */
  fault(spec: FaultSpec): Promise<Fault>;
  /** Returns when every watch has received everything and nothing is written any more; otherwise it throws, with who is behind. */
  settle(spec?: SettleSpec): Promise<void>;
  /** The `status` of a `Report`: what each client has done, and what of it is suspicious. */
  report(): Promise<any>;
  /** A kubeconfig as an object. */
  kubeconfigContent(): object;
  /** The objects that were created, changed or deleted since the workspace began, one a line. */
  changes(): Promise<string>;
  /** The path of a kubeconfig, which exists as long as the server. */
  kubeconfig(): string;
  /** A `KubeConfig` of the package @kubernetes/client-node, which has to be installed. */
  kubeConfig(): Promise<KubeConfig>;
  /** Applies manifests, server-side: files, or directories with everything below them. Returns the objects. */
  apply(...paths: string[]): Promise<KubernetesObject[]>;
  /** Applies one object, server-side. */
  applyObject(object: KubernetesObject): Promise<KubernetesObject>;
}

/** A recipe, or `match`, `when` and `effect`; see https://github.com/pintle/pintle/blob/main/docs/src/reference/testing-api.md. */
export interface FaultSpec {
  name?: string;
  recipe?: string;
  match?: object;
  when?: object;
  effect?: object;
  [field: string]: unknown;
}

export interface Fault {
  readonly name: string;
  /** The number of requests and events that it has hit. */
  hits(): Promise<number>;
  /** Ends its effect. */
  delete(): Promise<unknown>;
}

/** Durations are texts such as `100ms`. */
export interface SettleSpec {
  quiet?: string;
  timeout?: string;
  [field: string]: unknown;
}

/** The clock of a workspace; see https://github.com/pintle/pintle/blob/main/docs/src/guides/control-time.md. */
export class Clock {
  private constructor();
  /** Stops it, at a `time` if one is given. A `seed` makes uids and generated names repeatable. */
  stop(options?: { time?: Date | string; seed?: number }): Promise<void>;
  /** Advances it by milliseconds, or a text such as `90s` or `72h`. */
  advance(by: number | string): Promise<void>;
  /** Sets it to a time that is not before what it shows. */
  set(time: Date | string): Promise<void>;
  /** Lets it go on from what it shows. */
  resume(): Promise<void>;
  /** Returns to the time of the machine. */
  delete(): Promise<void>;
}

/** A place of an object: its resource with the group, as in `deployments.apps`. */
export interface ObjectPlace {
  resource: string;
  namespace?: string;
  name?: string;
}

/** What happens to one object. */
export interface Change extends ObjectPlace {
  action: 'create' | 'change' | 'recreate' | 'delete';
  /** The programs that wrote it. */
  by: string[];
  reason?: string;
  fields: { path: string; old?: unknown; new?: unknown }[];
}

/** A write that the server refused. */
export interface Refusal extends ObjectPlace {
  by: string;
  verb: string;
  message: string;
  count: number;
}

/** What a change would do. */
export interface Plan {
  changes: Change[];
  summary: Record<Change['action'], number>;
  refused: Refusal[];
  /** Differences between two runs of the change, with `--details`. */
  varying: string[];
  webhooks: string[];
  /** The hosts that the command has asked its proxy for. */
  hosts: string[];
}

/** Cells of a trial that show the same, with the smallest of them and the command that repeats it. */
export interface Finding {
  cell: string;
  disturbance: string;
  symptoms: string[];
  shown: number;
  repeated: number;
  cells: string[];
  command: string;
}

/** What faults break. */
export interface Trial {
  summary: string;
  findings: Finding[];
  cells: { cell: string; verdict: 'same' | 'differs' | 'not-tried'; symptoms?: string[]; reason?: string }[];
}

/** The plan of a change, with the arguments of `pintle plan`. It needs no server. */
export function plan(...words: string[]): Promise<Plan>;

/** The trial of a scenario, with the arguments of `pintle trial`. It needs no server. */
export function trial(...words: string[]): Promise<Trial>;

import { toolVersion } from './tool-version.js';

/** What every JSON document begins with: what it is, and which version of the tool wrote it. */
export interface ListHead<Kind extends string> {
  readonly kind: Kind;
  readonly schemaVersion: 1;
  readonly tool: { readonly name: 'flashproof'; readonly version: string };
}

/** How the document of a result begins. */
export interface DocumentHead<Kind extends string> extends ListHead<Kind> {
  /** ISO 8601, UTC. */
  readonly created: string;
  /** Wall-clock time of the work. */
  readonly seconds: number;
}

/** The head of a list, which is the same whenever it is made. */
export function listHead<Kind extends string>(kind: Kind): ListHead<Kind> {
  return { kind, schemaVersion: 1, tool: { name: 'flashproof', version: toolVersion() } };
}

/** The head of a result that took so many seconds and is made now. */
export function documentHead<Kind extends string>(kind: Kind, seconds: number): DocumentHead<Kind> {
  return { ...listHead(kind), created: new Date().toISOString(), seconds };
}

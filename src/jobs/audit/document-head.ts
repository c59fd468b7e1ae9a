/** The head of every JSON document: its kind, and the version of the tool that wrote it. */
export interface ListHead<Kind extends string> {
  readonly kind: Kind;
  readonly schemaVersion: 1;
  readonly tool: { readonly name: 'flashproof'; readonly version: string };
}

/** The head of the document of a result. */
export interface DocumentHead<Kind extends string> extends ListHead<Kind> {
  /** ISO 8601, UTC. */
  readonly created: string;
  /** Wall-clock time of the work. */
  readonly seconds: number;
}

/** The head of a list, the same each time for a version of the tool. */
export function listHead<Kind extends string>(kind: Kind, version: string): ListHead<Kind> {
  return { kind, schemaVersion: 1, tool: { name: 'flashproof', version } };
}

/** The head of a result that took that many seconds, dated now. */
export function documentHead<Kind extends string>(
  kind: Kind,
  version: string,
  seconds: number,
): DocumentHead<Kind> {
  return { ...listHead(kind, version), created: new Date().toISOString(), seconds };
}

/** Seconds of wall-clock time since `performance.now()` was `start`. */
export function secondsSince(start: number): number {
  return (performance.now() - start) / 1000;
}

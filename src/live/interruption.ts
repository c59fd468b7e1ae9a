/**
 * The signals that ask a process to end, and the status with which a shell would report that they did:
 * 128 and the signal's number (POSIX.1-2017, 2.8.2).
 */
const statuses: Readonly<Partial<Record<NodeJS.Signals, number>>> = {
  SIGHUP: 129,
  SIGINT: 130,
  SIGTERM: 143,
};

/**
 * Has `cleanUp` run when the process ends before the returned function is called: at its exit, and on
 * SIGHUP, SIGINT and SIGTERM, which then end it with status 129, 130 and 143. A SIGKILL leaves no
 * time for it.
 * @param cleanUp must be synchronous
 * @returns withdraws it
 */
export function cleanUpWhenInterrupted(cleanUp: () => void): () => void {
  const handlers = Object.entries(statuses).map(
    ([signal, status]) => [signal, () => process.exit(status)] as const,
  );
  process.once('exit', cleanUp);
  for (const [signal, handler] of handlers) process.once(signal, handler);
  return () => {
    process.off('exit', cleanUp);
    for (const [signal, handler] of handlers) process.off(signal, handler);
  };
}

/**
 * A request that cannot be carried out as given: a malformed file, an impossible flag, a tensor of
 * the wrong shape. The message is one line that says what is wrong, where, and how to mend it; the
 * command line prints it and exits with status 2.
 */
export class RequestError extends Error {
  override readonly name = 'RequestError';
}

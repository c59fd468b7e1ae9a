import { RequestError } from '../../src/request-error.js';

/** What breaks a message's line, or acts on the terminal that shows it. */
const unfit = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]|\p{Surrogate}/u;

/** The longest message. */
const mostCharacters = 2000;

/** What is wrong with how an input was refused; null where a RequestError of one line refuses it. */
export function refusalFault(error: unknown): string | null {
  if (!(error instanceof RequestError))
    return `not refused by a RequestError: ${error instanceof Error ? error.stack : String(error)}`;
  if (unfit.test(error.message)) return `unfit message: ${JSON.stringify(error.message)}`;
  return error.message.length > mostCharacters
    ? `message of ${error.message.length} characters: ${error.message.slice(0, 200)}`
    : null;
}

/** Takes a sound refusal for an answer. @throws Error for any other */
export function refusalOnly(error: unknown): null {
  const fault = refusalFault(error);
  if (fault === null) return null;
  throw new Error(fault, { cause: error });
}

import { unexplainedCause, type FoundCause } from '../conduct/causes.js';
export function explainRecurrence(..._: readonly unknown[]): FoundCause {
  return unexplainedCause();
}

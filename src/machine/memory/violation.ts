import { RequestError } from '../../request-error.js';

/** What an access to a memory, or the use of one, may do wrong: the kinds of findings of the machine. */
export type MemoryViolationKind =
  'lane-window' | 'tensor-allocation' | 'shared-overflow' | 'misaligned' | 'instruction-shape';

/** An illegal use of a memory, as data: what kind, and one sentence that says what and where. */
export interface MemoryViolation {
  readonly kind: MemoryViolationKind;
  readonly message: string;
}

/**
 * Throws a RequestError with the violation's message; does nothing for null. Transfers begin with it:
 * who wants a finding instead of an exception asks the transfer's check first.
 */
export function requireLegal(violation: MemoryViolation | null): void {
  if (violation !== null) throw new RequestError(violation.message);
}

import { findInvariance, type InvarianceOptions } from '../../../properties/index.js';
import type { Problem } from '../../problem/index.js';
import { createInvarianceReport, type InvarianceReport } from '../../report/json/check/index.js';
import { reportedProblem } from '../../report/json/index.js';
import { secondsSince } from '../audit/index.js';
import type { KernelUnderTest } from './kernel-under-test.js';

/** A search for changes of the surroundings that change bits. */
export interface InvarianceRequest extends InvarianceOptions {
  /** The tool's version. */
  readonly version: string;
}

/**
 * Searches for the smallest changes of a problem's surroundings that change the bits of a kernel's rows. What is
 * promised is added to the kernel's own promises.
 * @throws RequestError as `findInvariance`
 */
export async function searchInvariance(
  { kernel, promises, reported }: KernelUnderTest,
  problem: Problem,
  { version, ...options }: InvarianceRequest,
): Promise<InvarianceReport> {
  const start = performance.now();
  const features = [...(promises.features ?? []), ...(options.promises?.features ?? [])];
  const found = await findInvariance(kernel, problem, {
    ...options,
    promises: { ...promises, ...options.promises, features },
  });
  return createInvarianceReport(found, {
    version,
    kernel: reported,
    problem: reportedProblem(problem),
    seconds: secondsSince(start),
  });
}

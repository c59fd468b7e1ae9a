import { attentionOracle } from '../../oracles/index.js';
import { createTechniqueTable, type TechniqueTable } from '../attribution/index.js';
import {
  anyKernelArithmetic,
  auditAccuracy,
  forEachRowsBound,
  modelArithmetic,
  resolvePremises,
  type KernelArithmetic,
} from '../audit/index.js';
import type { FormatName } from '../formats/index.js';
import type { Problem } from '../problem/index.js';
import { createBoundReport, type BoundProvenance, type BoundReport } from '../report/json/index.js';
import { RequestError } from '../request-error.js';
import { declaredPremises, modelNamed, type ArithmeticRequest } from './declared-arithmetic.js';
import { secondsSince } from './document-head.js';

/** A problem, and how a kernel computes it. */
export interface BoundRequest extends ArithmeticRequest {
  readonly problem: Problem;
  /** Whether settings are given, which only a model has. */
  readonly hasSettings: boolean;
  /** The output's format; null for the model's, or that of Q. */
  readonly outputFormat: FormatName | null;
  /** What the report says of where the problem came from. */
  readonly origin: Omit<BoundProvenance, 'seconds'>;
  /** `performance.now()` when the work began; default: now. */
  readonly start?: number | undefined;
}

/** The report of bounds, and the table that it is of. */
export interface BoundResult {
  readonly report: BoundReport;
  readonly table: TechniqueTable;
}

function arithmeticOf(request: BoundRequest): KernelArithmetic {
  const { problem, outputFormat, kernel, as, models } = request;
  const premises = declaredPremises(request);
  if (premises !== null) {
    if (request.hasSettings)
      throw new RequestError('--set changes a kernel model; name one with --kernel');
    const output = outputFormat ?? problem.q.format;
    return anyKernelArithmetic(problem, output, resolvePremises(problem, output, premises));
  }
  const model = modelNamed((kernel ?? as)!, models);
  const own = modelArithmetic(model, problem, request.settings());
  return outputFormat === null ? own : { ...own, outputFormat };
}

/**
 * How far each technique of a kernel may move the output, without running anything.
 * @param progress of the stages `oracle` and `bounds`
 * @throws RequestError for a kernel that there is not, or that does not take the problem
 */
export function boundKernel(
  request: BoundRequest,
  progress: (stage: string, done: number) => void = () => undefined,
): BoundResult {
  const { problem, origin, start = performance.now() } = request;
  const arithmetic = arithmeticOf(request);
  const reference = attentionOracle(problem, {
    accuracy: auditAccuracy(arithmetic.outputFormat),
    progress: (done) => progress('oracle', done),
  });
  const meter = createTechniqueTable(reference, arithmetic.description);
  forEachRowsBound(problem, reference, arithmetic, meter.visit, {
    progress: (done) => progress('bounds', done),
  });
  const table = meter.table();
  return {
    report: createBoundReport(problem, table, { ...origin, seconds: secondsSince(start) }),
    table,
  };
}

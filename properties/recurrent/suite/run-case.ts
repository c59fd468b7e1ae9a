import { auditRecurrent, type RecurrentDeclaration } from '../../../src/audit/index.js';
import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  type Tensor,
} from '../../../src/formats/index.js';
import {
  recurrentQuantities,
  recurrentQuantityNames,
  recurrentQuantityShape,
  recurrentShape,
  type RecurrentQuantityName,
  type RecurrentResults,
} from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import {
  isTensor,
  KernelAbsent,
  KernelFault,
  NotApplicable,
  UnsupportedProblem,
} from '../../laws/index.js';
import {
  recurrentLaw,
  type RecurrentCase,
  type RecurrentKernel,
  type RecurrentLawId,
  type RecurrentLawTools,
  type RecurrentRun,
} from '../laws/index.js';
import {
  plainRecurrence,
  poseRecurrence,
  type PlainRecurrence,
  type PosedRecurrence,
} from '../problems/index.js';
import type { ResolvedRecurrentPromises } from './promises.js';

/** The result of a law on one case. */
export type RecurrentCaseResult =
  | { readonly status: 'held' }
  | { readonly status: 'unsupported' | 'inapplicable'; readonly reason: string }
  | {
      readonly status: 'violated';
      /** A sentence without its full stop. */
      readonly statement: string;
      /** Whether it took too long to be tried again. */
      readonly isSlow: boolean;
    };

/** @throws KernelFault for a result that is missing or does not fit the problem */
function readResults(
  posed: PosedRecurrence,
  plain: PlainRecurrence,
  results: RecurrentResults,
  declared: RecurrentDeclaration,
): RecurrentRun {
  const shape = recurrentShape(posed.problem);
  const numbers = recurrentQuantityNames.flatMap((name) => {
    const { isGradient, prose } = recurrentQuantities[name];
    const wanted = recurrentQuantityShape(name, posed.problem, shape);
    if (wanted === null || (isGradient && posed.gradients === undefined)) return [];
    const tensor = results[name];
    if (tensor === undefined && name === 'final_state') return [];
    if (!isTensor(tensor))
      throw new KernelFault(`the kernel gave no tensor for ${prose} (${name})`);
    const { shape: given } = tensor;
    if (given.length !== wanted.length || given.some((size, axis) => size !== wanted[axis]))
      throw new KernelFault(
        `${prose} has shape [${given.join(', ')}] in place of [${wanted.join(', ')}]`,
      );
    return [[name, decodeTensor(tensor)] as const];
  });
  return { posed, plain, results, numbers: Object.fromEntries(numbers), declared };
}

async function runOn(
  kernel: RecurrentKernel,
  plain: PlainRecurrence,
  declared: RecurrentDeclaration,
): Promise<RecurrentRun> {
  const posed = poseRecurrence(plain);
  try {
    const results = await kernel(posed.problem, posed.gradients);
    return readResults(posed, plain, results, declared);
  } catch (error) {
    const known = [UnsupportedProblem, KernelFault, KernelAbsent];
    if (known.some((one) => error instanceof one)) throw error;
    const message = error instanceof Error ? error.message : String(error);
    throw new KernelFault(`the kernel threw: ${message}`);
  }
}

/** Results with these numbers, in the formats that a kernel gave before. */
const composed: RecurrentLawTools['composed'] = (plain, numbers, like) => {
  const posed = poseRecurrence(plain);
  const shape = recurrentShape(posed.problem);
  const names = Object.keys(numbers) as Extract<keyof typeof numbers, RecurrentQuantityName>[];
  const tensors = names.flatMap((name): [string, Tensor][] => {
    const values = numbers[name];
    const format = like.results[name]?.format;
    const sizes = recurrentQuantityShape(name, posed.problem, shape);
    if (values === undefined || format === undefined || sizes === null) return [];
    return [[name, { format, shape: sizes, data: encodeFromFloat64(formats[format], values) }]];
  });
  return { posed, plain, numbers, results: Object.fromEntries(tensors), declared: like.declared };
};

/** What an audit says against a run; null for nothing. @throws NotApplicable where nothing has a bound */
function judged(
  { posed: { problem, gradients }, results, numbers, declared }: RecurrentRun,
  worstCaseOnly: boolean,
): string | null {
  const given = Object.fromEntries(Object.entries(results).filter(([name]) => name in numbers));
  try {
    const { verdict } = auditRecurrent(
      problem,
      { results: given, gradientInputs: gradients },
      { declared, diagnose: false },
    );
    const findings = verdict.findings.filter(({ isWorstCase }) => isWorstCase || !worstCaseOnly);
    if (findings.length === 0 && !verdict.judged) throw new NotApplicable('nothing has a bound');
    return findings[0]?.statement ?? null;
  } catch (error) {
    if (error instanceof RequestError) throw new NotApplicable(error.message);
    throw error;
  }
}

/** A declaration but for form and chunk, which configurations change. */
function anyForm({ state, intermediate }: RecurrentDeclaration): RecurrentDeclaration {
  return { state, intermediate };
}

/** Tries a law on one case. */
export async function runRecurrentCase(
  id: RecurrentLawId,
  { posed, choice }: RecurrentCase,
  kernel: RecurrentKernel,
  promises: ResolvedRecurrentPromises,
): Promise<RecurrentCaseResult> {
  const strength = promises.laws[id];
  if (strength === 'none') return { status: 'unsupported', reason: 'the law is not promised' };
  const { declared } = promises;
  const tools: RecurrentLawTools = {
    promises,
    strength,
    run: (plain) => runOn(kernel, plain, declared),
    runConfiguration: (name, plain) => {
      const { kernel: other, declared: own } = promises.configurations[name];
      return runOn(other, plain, own ?? anyForm(declared));
    },
    judge: judged,
    composed,
  };
  try {
    const statement = await recurrentLaw(id).violation(plainRecurrence(posed), choice, tools);
    return statement === null
      ? { status: 'held' }
      : { status: 'violated', statement, isSlow: false };
  } catch (error) {
    if (error instanceof NotApplicable) return { status: 'inapplicable', reason: error.message };
    if (error instanceof UnsupportedProblem)
      return { status: 'unsupported', reason: error.message };
    if (error instanceof KernelFault)
      return { status: 'violated', statement: error.message, isSlow: error.isSlow };
    throw error;
  }
}

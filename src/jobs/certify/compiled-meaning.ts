import {
  KernelFault,
  UnsupportedProblem,
  type AttentionOutputs,
  type FollowedOutputs,
  type ValueFollower,
} from '../../../properties/index.js';
import { countOverflowed, coverageOf, type OutputValues } from '../../meaning/certify/index.js';
import { decidedValue } from '../../meaning/trace/index.js';
import { problemShape } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { sourceLines } from '../../ptx/syntax/index.js';
import { machineStatements } from '../launch/launch-findings.js';
import { bytesOf } from '../launch/launch-tensors.js';
import { chainLaunches, countLaunches } from '../launch/open-chain.js';
import { openTemplate } from '../launch/open-launch.js';
import { poseLaunches } from '../launch/template/run-on-problem.js';
import { algebraReasons, missedReasons, reachReasons } from './certificate-reasons.js';
import { compareWithContract } from './compare-with-contract.js';
import { evaluateRun } from './contract-values.js';
import { certifyInfluence } from './certify-influence.js';
import { followOpened, hashExpressions, type FollowedRun } from './followed-run.js';
import { namesByContents } from './input-names.js';
import { readContents } from './row-contents.js';
import { tellContract, type ToldAttention } from './told-contract.js';

/** Distinct numbers for expressions, by their hashes. */
type ExpressionNumbers = Map<string, number>;

/** The outputs of a run on a problem as tensors. @throws KernelFault where the machine found something wrong */
function outputsOf({ launches, result }: FollowedRun): AttentionOutputs {
  const { opened } = result;
  const faults = launches.flatMap(
    (one) => machineStatements(one.run, sourceLines(one.opened.module)).faults,
  );
  if (faults.length > 0) throw new KernelFault(faults.join('; '));
  const tensors = (opened.posed?.outputs ?? []).map(({ name, quantity, tensor }) => {
    bytesOf(tensor).set(result.outputs.find((output) => output.name === name)!.bytes);
    return [quantity.name, tensor] as const;
  });
  const { out, lse = null } = Object.fromEntries(tensors) as Partial<AttentionOutputs>;
  if (out === undefined) throw new UnsupportedProblem('it has no output O');
  return { out, lse };
}

/** The numbers of the expressions of the outputs' elements; NaN for those that have none. */
function expressionsOf(
  run: FollowedRun,
  { contract, places }: ToldAttention,
  numbers: ExpressionNumbers,
): ReturnType<FollowedOutputs['expressions']> {
  const { problem, outputs } = contract;
  const { batch, heads, queries, vDim } = problemShape(problem);
  const contents = readContents(problem, places, run.result.opened.tensors);
  const { name } = namesByContents(run.recorder.inputs, places, contents);
  const hashes = hashExpressions(run, { name, describe: () => '' });
  const numberOf = ({ values }: OutputValues, element: number): number => {
    const value = values[element];
    if (value <= decidedValue) return NaN;
    const key = hashes.of(value).join();
    const known = numbers.get(key) ?? numbers.size;
    numbers.set(key, known);
    return known;
  };
  const of = (quantity: string, columns: number): Float64Array | null => {
    const output = outputs.find((one) => one.name === quantity);
    const known = run.outputs.find(({ tensor }) => tensor === output?.tensor);
    if (output === undefined || known === undefined) return null;
    return Float64Array.from({ length: batch * heads * queries * columns }, (_, i) => {
      const row = Math.floor(i / columns);
      const head = Math.floor(row / queries);
      return numberOf(
        known,
        output.elementOf(Math.floor(head / heads), head % heads, row % queries, i % columns),
      );
    });
  };
  return { out: of('out', vDim) ?? new Float64Array(0), lse: of('lse', 1) };
}

/** The launch. @throws UnsupportedProblem where its numbers do not fit the problem */
function declining<T>(pose: () => T): T {
  try {
    return pose();
  } catch (error) {
    if (error instanceof RequestError) throw new UnsupportedProblem(error.message);
    throw error;
  }
}

/**
 * Follows the runs of a compiled kernel on problems: what their values mean, for laws. Launches that follow are followed up
 * to the first that takes dO.
 *
 * @param path of a launch file that is a template
 * @throws RequestError for files that cannot be read
 */
export async function startFollowing(path: string): Promise<ValueFollower> {
  const template = await openTemplate({ path });
  const numbers: ExpressionNumbers = new Map();
  return async (problem) => {
    const launches = declining(() =>
      poseLaunches(template, problem, { tensors: [], path }, countLaunches(template, [])),
    );
    const run = await followOpened(chainLaunches(launches), { path, contract: false, races: true });
    const outputs = outputsOf(run);
    const { told } = await tellContract(run, undefined);
    if (told?.kind !== 'attention')
      throw new UnsupportedProblem('nothing says what its tensors are');
    const real = evaluateRun(run);
    const known = run.outputs.map((output) => ({
      name: output.tensor,
      coverage: coverageOf(run.recorder, output),
      overflowed: countOverflowed(run.recorder.trace, real.kept, output),
    }));
    const compared = compareWithContract(run, real, told.contract);
    const { refuting, missing } = algebraReasons(known, compared, run, told.contract);
    const influence = certifyInfluence({ run, told }) ?? [];
    const unknown = influence.reduce((sum, one) => sum + one.unknown, 0);
    return {
      outputs,
      means: { refuted: refuting, unknown: [...missing, ...missedReasons(influence)] },
      unreached: {
        refuted: reachReasons(influence),
        unknown: unknown === 0 ? [] : [`of ${unknown} elements it is unknown what reaches them`],
      },
      expressions: () => expressionsOf(run, told, numbers),
    };
  };
}

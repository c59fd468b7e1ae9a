import { writeFileSync } from 'node:fs';
import { subtractDoubleDouble } from '../../../src/arith/index.js';
import { auditGradients, judgeOutputs, type Judgement } from '../../../src/audit/index.js';
import {
  type Certificate,
  certifyFollowed,
  contractOfLaunch,
  type FollowedRun,
  followLaunch,
  openLaunch,
} from '../../../src/jobs/index.js';
import { recurrentOracle } from '../../../oracles/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { tensorOf } from '../../../src/jobs/launch/launch-tensors.js';
import { Idioms, RealDomain } from '../../../src/meaning/domains/index.js';
import { decidedValue } from '../../../src/meaning/trace/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import type { SemanticMutant } from './semantic-mutants.js';

/** Real numbers that differ by less, relative to the larger of 1 and the number, are the same. */
const sameReal = 1e-25;

/** Steps of a mutant, as a multiple of the kernel's own, and more for a kernel of few. */
const [stepFactor, moreSteps] = [4, 10_000];

/** What came of a mutant. */
export interface SemanticVerdict {
  /** Whether a bit of an output changed. */
  readonly changesBits: boolean;
  /** Whether the real value of an element changed, or the run did not end cleanly. */
  readonly changesReal: boolean;
  /** Whether the audit of the outputs fails. */
  readonly isAudited: boolean;
  readonly status: Certificate['status'];
  readonly hasFindings: boolean;
  /** The largest change of a real value; Infinity where one is lost or not written. */
  readonly change: number;
  readonly changedElement: string;
  readonly certificate: Certificate;
}

/** The kernel's own run, and what its mutants are compared with. */
export interface SemanticJudge {
  readonly base: FollowedRun;
  readonly certificate: Certificate;
  readonly passesAudit: boolean;
  /** What came of a mutant; null for a text that is no program. */
  readonly judge: (mutant: SemanticMutant) => Promise<SemanticVerdict | null>;
}

/** Whether a run passes an audit; causes are not looked for. */
type Audit = (run: FollowedRun) => boolean;

/** The audit of O and the LSE of a problem; exact values are found once. */
export function auditOfOutputs(posed: Problem): Audit {
  let reference: Judgement['reference'] | undefined;
  return ({ result }) => {
    const [out, lse] = result.outputs.map(tensorOf);
    const known = reference === undefined ? {} : { reference };
    const judged = judgeOutputs(posed, { out, lse }, { diagnose: false, ...known });
    reference = judged.reference;
    return judged.verdict.pass;
  };
}

/** The audit of dQ, dK and dV, which are the outputs of a run in this order, of what its contract says that it is given. */
export function auditOfGradients(): Audit {
  return ({ result }) => {
    const { tensors, file } = result.opened;
    const given = (name: string) => tensorOf(tensors.get(file.contract!.views.get(name)!.tensor)!);
    const [q, k, v, dout, out, lse] = ['q', 'k', 'v', 'dout', 'out', 'lse'].map(given);
    const { notes } = file.contract!;
    const settings = { scale: Number(notes.get('scale')), causal: notes.get('causal') === 'true' };
    const [dq, dk, dv] = result.outputs.map(tensorOf);
    const problem: Problem = { q, k, v, ...settings, window: null, softcap: null };
    // dQ has another format than the others.
    return [{ dq }, { dk, dv }].every(
      (gradients) =>
        auditGradients(problem, { dout, out, lse, ...gradients }, { diagnose: false }).verdict.pass,
    );
  };
}

/**
 * Whether an output and a final state, which are the outputs of a run in this order, are within 1 % of their largest element from those
 * of the oracle of recurrences: what a test of tolerances asks.
 */
export async function auditOfRecurrence(launch: string): Promise<Audit> {
  const contract = await contractOfLaunch(await openLaunch({ path: launch }));
  if (contract.kind !== 'recurrent') throw new Error(`${launch} is of no recurrence`);
  const { out, finalState } = recurrentOracle(contract.problem);
  return ({ result }) =>
    [out, finalState].every(({ values }, i) => {
      const given = decodeTensor(tensorOf(result.outputs[i]));
      const largest = values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
      return values.every((x, at) => Math.abs(x - given[at]) <= 0.01 * largest);
    });
}

/** The real values of a run's outputs, where a polynomial that stands for 2^x is 2^x, as certificates take it. */
function realOf({ recorder: { trace } }: FollowedRun): RealDomain {
  const real = new RealDomain(trace, new Idioms(trace));
  real.extend();
  return real;
}

/** The largest change of a real value. */
function compareReal(
  base: FollowedRun,
  ofBase: RealDomain,
  other: FollowedRun,
): { readonly change: number; readonly changedElement: string } {
  const ofOther = realOf(other);
  let [change, changedElement] = [0, ''];
  base.outputs.forEach(({ tensor, values }, output) => {
    values.forEach((value, i) => {
      const mutated = other.outputs[output].values[i];
      if (value <= decidedValue && mutated <= decidedValue) return;
      const [x, y] = [ofBase.of(value), ofOther.of(mutated)];
      const distance =
        mutated <= decidedValue ? Infinity : Math.abs(subtractDoubleDouble(x, y).high);
      const isSame = Object.is(x.high, y.high) && Object.is(x.low, y.low);
      const relative = isSame ? 0 : distance / Math.max(1, Math.abs(x.high));
      const found = Number.isNaN(relative) ? Infinity : relative;
      if (found > change) [change, changedElement] = [found, `${tensor}[${i}]`];
    });
  });
  return { change, changedElement };
}

function areBitsEqual(base: FollowedRun, other: FollowedRun): boolean {
  return base.result.outputs.every(({ bytes }, i) =>
    Buffer.from(bytes).equals(other.result.outputs[i].bytes),
  );
}

/**
 * Runs a kernel, and then its mutants; the mutants' text is written to `mutantPath`.
 * @param problem that of a template
 */
export async function semanticJudge(
  { launch, problem }: { readonly launch: string; readonly problem?: string },
  audit: Audit,
  mutantPath: string,
): Promise<SemanticJudge> {
  const request = {
    path: launch,
    problem,
    contract: false,
    races: true,
    samples: 1,
  };
  const base = await followLaunch(request, () => undefined);
  const ofBase = realOf(base);
  const passesAudit = audit(base);
  const mostSteps = stepFactor * base.result.run.mostClusterSteps + moreSteps;
  const judge = async (mutant: SemanticMutant): Promise<SemanticVerdict | null> => {
    writeFileSync(mutantPath, mutant.ptx);
    const changed = { ...request, ptx: mutantPath, mostSteps };
    try {
      const other = await followLaunch(changed, () => undefined);
      const certificate = await certifyFollowed(other, changed, '');
      const compared = compareReal(base, ofBase, other);
      const changesBits = !areBitsEqual(base, other);
      return {
        changesBits,
        changesReal: compared.change > sameReal,
        isAudited: changesBits && !audit(other),
        status: certificate.status,
        hasFindings: !certificate.run.pass,
        ...compared,
        certificate,
      };
    } catch (error) {
      if (error instanceof RequestError) return null;
      throw error;
    }
  };
  return {
    base,
    certificate: await certifyFollowed(base, request, ''),
    passesAudit,
    judge,
  };
}

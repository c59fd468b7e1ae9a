import { formatGroupedCount, plainText } from '../../words/index.js';
import type { AttentionContract, LaunchContract } from '../launch/contract-of-launch.js';
import type { AlgebraCertificate, Certificate, OutputCertificate } from './certificate.js';
import { unnamed, unwrittenOf } from './contract-values.js';
import type { FollowedRun } from './followed-run.js';

/** The parts of a certificate that decide its status. */
type DecidingParts = Pick<
  Certificate,
  'run' | 'outputs' | 'algebra' | 'uncompared' | 'influence' | 'same' | 'schedules'
>;

/** What refutes a certificate, and what it lacks: a clause each. */
export interface CertificateReasons {
  readonly refuting: readonly string[];
  readonly missing: readonly string[];
}

/** A clause of how many there are, if there are any. */
function ifAny(count: number, one: string, clause: string): readonly string[] {
  return count === 0 ? [] : [`${formatGroupedCount(count, one)} ${clause}`];
}

/** What an output lacks by itself. */
function missingOf(
  output: Pick<OutputCertificate, 'name' | 'coverage'>,
  followed: FollowedRun,
  contract: LaunchContract | null,
): readonly string[] {
  const name = plainText(output.name);
  const { meaning, lost, decided } = output.coverage;
  const unwritten = unwrittenOf(output, followed, contract);
  const holes = [
    ...ifAny(lost, 'element', `of ${name} are lost`),
    ...ifAny(unwritten, 'element', `of ${name} are not written`),
  ];
  // Where everything is a constant or nothing is there, nothing was proved of what the kernel computes.
  return holes.length === 0 && meaning + decided === 0
    ? [`no element of ${name} depends on an input`]
    : holes;
}

/** Words of a contract, for reasons. */
const wordsOf = {
  attention: { factor: 'q·k', law: 'attention' },
  recurrent: { factor: 'the gates', law: 'the recurrence' },
} as const satisfies Readonly<Record<LaunchContract['kind'], object>>;

/** Quantities of the contract that no part of the certificate has compared, and elements that could not be. */
function uncompared(
  algebra: readonly AlgebraCertificate[],
  known: Certificate['uncompared'],
  { kind, outputs }: LaunchContract,
): readonly string[] {
  const words = wordsOf[kind];
  const compared = algebra.map(({ output }) => output);
  const why = (name: string) => known.find(({ output }) => output === name)?.reason;
  return [
    ...outputs.flatMap(({ name }) =>
      compared.includes(name)
        ? []
        : [[`${name} is not compared with the contract`, why(name)].filter(Boolean).join(': ')],
    ),
    ...algebra.flatMap(({ output, without }) =>
      ifAny(without, 'element', `of ${output} have no real value to compare`),
    ),
    ...(algebra.every(({ isFactorTold, telling }) => isFactorTold || telling === 0)
      ? []
      : [`the real values are those of any factor of ${words.factor}, so that none is told`]),
    ...algebra.flatMap(({ output, telling, compared, without, holds }) =>
      telling > 0 || !holds || (compared === 0 && without > 0)
        ? []
        : [
            `no element of ${output} tells ${words.law} from other laws: each is a sum of zeros, infinite or NaN`,
          ],
    ),
  ];
}

/** "1.0e-31", or what stands for a distance from or to what is no number. */
function distanceText(distance: number): string {
  return distance === Infinity ? 'infinitely far' : distance.toExponential(1).replace('e+', 'e');
}

/** The digits of a scale that an author wrote, and that the fp32 log2 e of compilers leaves. */
const scaleDigits = 6;

/** The scale that a kernel's factor of q·k would have, where it is another than the contract's. */
function scaleText(constantError: number, { problem }: AttentionContract): string {
  if (problem.softcap !== null) return '';
  const [its, wanted] = [problem.scale * (1 + constantError), problem.scale].map((scale) =>
    Number(scale.toPrecision(scaleDigits)),
  );
  return its === wanted ? '' : `, as of a scale of ${its} where the contract has ${wanted}`;
}

/** Why an output is not the contract's, in a clause. */
function refutedClause(
  { output, distance, limit, constant, constantError, weights }: AlgebraCertificate,
  contract: LaunchContract | null,
): string {
  const isLaw = output === 'out' && weights === null && distance <= limit;
  if (isLaw && constantError !== null && contract?.kind === 'recurrent')
    return `out is the recurrence's times ${Number((1 + constantError).toPrecision(scaleDigits))}`;
  if (isLaw && constantError !== null && contract?.kind === 'attention')
    return `out is attention with a factor of q·k that is no known constant${scaleText(constantError, contract)}`;
  return `${output} is not the contract's: its real values are ${distanceText(distance)} from it with ${constant ?? 'no known constant'}`;
}

/** The reasons against the claim that real values are the contract's: what refutes it, and what it lacks. */
export function algebraReasons(
  outputs: readonly Pick<OutputCertificate, 'name' | 'coverage' | 'overflowed'>[],
  { algebra, uncompared: known }: Pick<Certificate, 'algebra' | 'uncompared'>,
  followed: FollowedRun,
  contract: LaunchContract | null,
): CertificateReasons {
  const { unfollowed } = followed;
  return {
    refuting: [
      ...(algebra ?? []).flatMap((one) => (one.holds ? [] : [refutedClause(one, contract)])),
      ...outputs.flatMap(({ name, overflowed }) =>
        ifAny(
          overflowed,
          'element',
          `of ${plainText(name)} are infinite or NaN, though their real values are finite`,
        ),
      ),
    ],
    missing: [
      ...(outputs.length + unfollowed.length === 0 ? ['the launch names no output'] : []),
      ...unfollowed.map(
        ({ name, dtype }) =>
          `values of ${plainText(name)} are not followed, which are ${plainText(dtype)}`,
      ),
      ...outputs.flatMap((output) => missingOf(output, followed, contract)),
      ...(contract === null ? [] : uncompared(algebra ?? [], known, contract)),
    ],
  };
}

/** The reasons against the claim that nothing reaches a row that it must not see. */
export function reachReasons(influence: Certificate['influence']): readonly string[] {
  return (influence ?? []).flatMap(({ name, withWeight: { elements, worst } }) => {
    if (elements === 0) return [];
    const [{ row, names }] = worst;
    return [
      `${formatGroupedCount(elements, 'element')} of ${name} depend on what must not reach them (row ${row} on ${plainText(names[0])})`,
    ];
  });
}

/** The reasons against the claim that all that a row sees reaches it. */
export function missedReasons(influence: Certificate['influence']): readonly string[] {
  return (influence ?? []).flatMap(({ name, missed: { elements, worst } }) => {
    if (elements === 0) return [];
    const [{ row, names }] = worst;
    return [
      `${formatGroupedCount(elements, 'element')} of ${name} do not depend on what must reach them (row ${row} on ${plainText(names[0])})`,
    ];
  });
}

/** The reasons against a certificate: what refutes it, and what it lacks. */
export function reasonsOf(
  { run, outputs, influence, same, schedules, ...compared }: DecidingParts,
  followed: FollowedRun,
  contract: LaunchContract | null,
): CertificateReasons {
  const path = plainText(same?.path ?? '');
  const rows = same?.outputs ?? [];
  const ofAlgebra = algebraReasons(outputs, compared, followed, contract);
  return {
    refuting: [
      ...(run.pass ? [] : ['the run has findings']),
      ...ofAlgebra.refuting,
      ...rows.flatMap(({ name, other }) =>
        ifAny(other, 'row', `of ${plainText(name)} have another expression than in ${path}`),
      ),
      ...(schedules?.failed ?? []).map((name) => `the run has findings in the schedule ${name}`),
      ...(schedules?.outputs ?? []).flatMap(({ name, other, first }) =>
        ifAny(
          other,
          'row',
          `of ${plainText(name)} have another expression in the schedule ${first?.schedule}`,
        ),
      ),
    ],
    missing: [
      ...ofAlgebra.missing,
      ...reachReasons(influence),
      ...missedReasons(influence),
      ...rows.flatMap(({ name, lost }) =>
        ifAny(lost, 'row', `of ${plainText(name)} have lost values, here or in ${path}`),
      ),
      ...(schedules?.outputs ?? []).flatMap(({ name, lost }) =>
        ifAny(lost, 'row', `of ${plainText(name)} have lost values in a schedule`),
      ),
    ],
  };
}

/** What a certificate does not speak of, a clause each. */
export function silenceOf(
  { algebra, influence, same, outputs }: Omit<DecidingParts, 'uncompared'>,
  { result, launches, recorder, recordedOtherwise }: FollowedRun,
  contract: LaunchContract | null,
): readonly string[] {
  const { run, opened } = result;
  const decided = recorder.losses.decided.size;
  return [
    ...(decided === 0
      ? []
      : [`other outcomes of the decisions at ${formatGroupedCount(decided, 'place')}`]),
    'paths that this run does not take, and other sizes',
    ...(run.speaksForAllSchedules ? [] : ['schedules other than the one that was run']),
    ...(opened.next === null ? [] : ['the launches that follow this one (next)']),
    ...(launches.length === 1
      ? []
      : ['tensors that these launches leave and that are no outputs named here']),
    ...recordedOtherwise.map(
      ({ launch, tensor }) =>
        `what was done to ${plainText(tensor)} before launch ${launch}, which was recorded with other bytes of it than the launches before leave`,
    ),
    ...outputs.flatMap(({ name, coverage: { decided: integers } }) =>
      ifAny(integers, 'element', `of ${plainText(name)}, which are decided`),
    ),
    ...(algebra !== null
      ? []
      : ['what the kernel is to compute (a contract in the launch file, or --contract)']),
    ...(contract === null ? [] : outputs.flatMap((output) => unnamed(output, contract))),
    ...(influence ?? []).flatMap(({ name, unknown }) =>
      ifAny(unknown, 'element', `of ${name} as to what reaches them`),
    ),
    same === null
      ? 'whether another launch gives the same bits (--same)'
      : 'equal bits for inputs that make a value infinite or NaN which is a finite number here',
    ...(same?.outputs ?? []).flatMap(({ name, unpaired }) =>
      ifAny(unpaired, 'row', `of ${plainText(name)} that ${plainText(same!.path)} does not have`),
    ),
    'whole numbers of more than 8 bits among the inputs: they are those of this launch',
  ];
}

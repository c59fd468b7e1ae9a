import {
  sourceText,
  type AlgebraCertificate,
  type Certificate,
  type CertificatePlace,
  type ForbiddenReach,
  type IdiomCertificate,
  type OutputReach,
  type PartingPlaces,
  type SameCertificate,
  type ScheduleCertificate,
} from '../../../jobs/index.js';
import { formatGrouped, formatGroupedCount, plainText } from '../../../words/index.js';

/** Names of inputs that are listed for a row. */
const mostNames = 3;

/** The statuses of certificates as they are printed. */
export const certificateTitles = {
  certified: 'CERTIFIED',
  refuted: 'REFUTED',
  incomplete: 'NOT CERTIFIED',
} as const satisfies Record<Certificate['status'], string>;

/** A number with three digits. */
export function shortNumber(value: number): string {
  return value === 0 ? '0' : value.toExponential(1).replace('e+', 'e');
}

/** "kernel.py:88 (line 1258: cvt.rn.f16x2.f32)", or the site alone. */
function placeText({ launch, site, source }: CertificatePlace): string {
  const where = launch === null ? site : `launch ${launch}, ${site}`;
  return source === null ? where : `${sourceText(source)} (${where})`;
}

/** Where real values are farthest from the contract, if they are not the contract's. */
function worstText({ worst, distance, limit, output }: AlgebraCertificate): string {
  if (worst === null || distance <= limit) return '';
  const { batch, head, row, column } = worst;
  return `; worst at batch ${batch}, head ${head}, row ${row}${output === 'lse' ? '' : `, column ${column}`}`;
}

/** A gradient against that of attention. */
function gradientLine(gradient: AlgebraCertificate): string {
  const { output, rows, compared, constant, constantError, holds } = gradient;
  const { distance, idealDistance, keptDistance, weights, delta } = gradient;
  const factor =
    output === 'dv' ? '' : `, times ${constant ?? 'a factor that is no known constant'}`;
  const error =
    constantError === null || constantError === 0
      ? ''
      : ` (${shortNumber(constantError)} from exact)`;
  const terms = `P = ${weights ?? 'unknown'}${delta === null ? '' : `, δ = ${delta}`}${factor}${error}`;
  const kept =
    keptDistance === null
      ? ''
      : `; ${shortNumber(keptDistance)} with polynomials as they are computed`;
  const of = `${formatGroupedCount(compared, 'element')} in ${formatGroupedCount(rows, 'row')}`;
  return `Algebra of ${output}: ${holds ? '' : 'not '}the gradient of softmax attention: real values within ${shortNumber(distance)} with ${terms}; ${shortNumber(idealDistance)} from the exact gradient${kept}${worstText(gradient)} (${of})`;
}

/** A result of a recurrence against it. */
function recurrentLine(algebra: AlgebraCertificate, family: string): string {
  const { output, rows, compared, constant, constantError, holds } = algebra;
  const { distance, idealDistance, keptDistance } = algebra;
  const error =
    constant === null || constantError === null || constantError === 0
      ? ''
      : `, log2 e ${shortNumber(constantError)} from exact`;
  const known = constant ?? 'a scale that is no known constant';
  const kept =
    keptDistance === null
      ? ''
      : `; ${shortNumber(keptDistance)} with polynomials as they are computed`;
  const of = `${formatGroupedCount(compared, 'element')} in ${formatGroupedCount(rows, 'row')}`;
  return `Algebra of ${output}: ${holds ? '' : 'not '}the recurrence ${family}: real values within ${shortNumber(distance)} with ${known}${error}; ${shortNumber(idealDistance)} from the exact recurrence${kept}${worstText(algebra)} (${of})`;
}

/** An output or a gradient against the contract, in a sentence. */
export function algebraLine(
  algebra: AlgebraCertificate,
  contract: Certificate['contract'],
): string {
  const { output, compared, holds, telling } = algebra;
  if (holds && telling === 0)
    return `Algebra of ${output}: unknown, since each of ${formatGroupedCount(compared, 'element')} is a sum of zeros, infinite or NaN`;
  if (contract?.kind === 'recurrent') return recurrentLine(algebra, contract.family);
  return algebra.weights === null ? outputLine(algebra) : gradientLine(algebra);
}

function outputLine(algebra: AlgebraCertificate): string {
  const { output, rows, compared, constant, constantError, holds } = algebra;
  const { distance, idealDistance, keptDistance } = algebra;
  const what = output === 'out' ? 'softmax attention' : 'its log-sum-exp';
  const of = `${formatGroupedCount(compared, 'element')} in ${formatGroupedCount(rows, 'row')}`;
  // A factor that is no known constant has an error all the same.
  const isOdd = constant === null && constantError !== null;
  const known = isOdd
    ? 'a factor of q·k that is no known constant'
    : (constant ?? 'exact constants, since these values tell none');
  const error =
    constantError === null || constantError === 0
      ? ''
      : `, ${shortNumber(constantError)} from exact`;
  const ideal = `; ${shortNumber(idealDistance)} from exact ${output === 'out' ? 'attention' : 'LSE'}`;
  const kept =
    keptDistance === null
      ? ''
      : `; ${shortNumber(keptDistance)} with polynomials as they are computed`;
  return `Algebra of ${output}: ${holds ? '' : 'not '}${what}: real values within ${shortNumber(distance)} with ${known}${error}${ideal}${kept}${worstText(algebra)} (${of})`;
}

/** What was taken for a function, in a sentence. */
export function idiomLine({ function: name, degree, distance, places }: IdiomCertificate): string {
  const count = places.reduce((sum, place) => sum + place.count, 0);
  const [first] = places;
  return `Taken for ${name}: ${formatGroupedCount(count, 'polynomial')} of degree ${degree}, within ${shortNumber(distance)} of it, at ${formatGroupedCount(places.length, 'place')}, first ${placeText(first)}`;
}

/** "key 7, key 8, key 9 and 12 others in row 3, 40 input rows in all". */
function reachText({ labels, worst: [first] }: ForbiddenReach): string {
  const { row, names, labels: ofRow } = first;
  const shown = names.slice(0, mostNames);
  const rest = ofRow - shown.length;
  const others = rest === 0 ? '' : ` and ${formatGroupedCount(rest, 'other')}`;
  return `${plainText(shown.join(', '))}${others} in row ${formatGrouped(row)}, ${formatGroupedCount(labels, 'input row')} in all`;
}

/** Words for what must not reach an output, and for what must. */
const inputWords = {
  attention: {
    forbidden: 'a key, value or query that its row must not see',
    needed: 'a key, value or query that attention of their row depends on',
  },
  recurrent: {
    forbidden: 'a token or state that must not reach it',
    needed: 'a token or state that the recurrence depends on',
  },
} as const;

/** What reaches an output that must not: a sentence, and indented what goes with it. */
export function influenceLines(
  { name, elements, unknown, withWeight, inStructure, missed }: OutputReach,
  contract: Certificate['contract'],
): readonly string[] {
  const { forbidden, needed } = inputWords[contract?.kind ?? 'attention'];
  const head =
    withWeight.elements === 0
      ? `none of ${formatGroupedCount(elements - unknown, 'element')} depends on ${forbidden}`
      : `${formatGroupedCount(withWeight.elements, 'element')} depend on ${forbidden}: ${reachText(withWeight)}`;
  const rest = unknown === 0 ? '' : `; ${formatGroupedCount(unknown, 'element')} unknown`;
  return [
    `Influence on ${name}: ${head}${rest}`,
    ...(inStructure.elements === 0
      ? []
      : [
          `  ${formatGroupedCount(inStructure.elements, 'element')} have such ones multiplied by zero, so that only a NaN or an infinity there matters: ${reachText(inStructure)}`,
        ]),
    ...(missed.elements === 0
      ? []
      : [
          `  ${formatGroupedCount(missed.elements, 'element')} do not depend on ${needed}: ${reachText(missed)}`,
        ]),
  ];
}

function equalBitsLine(elements: number): readonly string[] {
  if (elements === 0) return [];
  return [
    `  ${formatGroupedCount(elements, 'element')} of another expression have equal bits on these inputs`,
  ];
}

/** The comparison with another launch: a sentence for each output, and indented what goes with it. */
export function sameLines({ path, outputs }: SameCertificate): readonly string[] {
  return outputs.flatMap(
    ({ name, rows, unpaired, same, other, lost, otherWithEqualBits, parting }) => [
      `Bits of ${name}: ${formatGrouped(same)} of ${formatGroupedCount(rows, 'row')} are the same expression in ${path}, ${formatGrouped(other)} another, ${formatGrouped(lost)} lost`,
      ...(unpaired === 0
        ? []
        : [
            `  ${formatGroupedCount(unpaired, 'row')} of other queries, keys or values than all there`,
          ]),
      ...equalBitsLine(otherWithEqualBits),
      ...(parting === null ? [] : partingLines(parting)),
    ],
  );
}

function partingLines({ element, otherElement, here, there }: PartingPlaces): readonly string[] {
  // Constants have no place.
  const at = (place: CertificatePlace) => (place.site === '' ? '' : ` at ${placeText(place)}`);
  return [
    `  element ${formatGrouped(element)} parts${at(here)}: ${plainText(here.what)}`,
    `  element ${formatGrouped(otherElement)} there${at(there)}: ${plainText(there.what)}`,
  ];
}

/** The comparison with random schedules, likewise. */
export function scheduleLines({ runs, outputs }: ScheduleCertificate): readonly string[] {
  const all = formatGroupedCount(runs, 'random schedule');
  return outputs.flatMap(({ name, rows, other, lost, otherWithEqualBits, schedules, first }) => {
    const lostText = lost === 0 ? '' : `, ${formatGroupedCount(lost, 'row')} lost`;
    if (first === null)
      return [
        `Order of ${name}: the same expressions in ${all} (${formatGroupedCount(rows, 'row')}${lostText})`,
      ];
    return [
      `Order of ${name}: in ${formatGrouped(schedules)} of ${all} up to ${formatGrouped(other)} of ${formatGroupedCount(rows, 'row')} have another expression${lostText}`,
      ...equalBitsLine(otherWithEqualBits),
      `  first in ${first.schedule}:`,
      ...partingLines(first),
    ];
  });
}

/** Races that change no output, a sentence each, indented. */
export function harmlessLines({ harmlessRaces }: Certificate['run']): readonly string[] {
  return harmlessRaces.map(
    ({ launch, lines, races }) =>
      `  ${formatGroupedCount(races, 'race')} at ${launch === null ? '' : `launch ${launch}, `}lines ${lines.join(', ')}: what is loaded there becomes part of no output, decides nothing and is no address`,
  );
}

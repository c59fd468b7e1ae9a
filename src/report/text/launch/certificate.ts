import {
  groupPlaces,
  groupText,
  sourceText,
  type AlgebraCertificate,
  type Certificate,
  type CertificatePlace,
  type ForbiddenReach,
  type IdiomCertificate,
  type OutputCertificate,
  type OutputReach,
  type PartingPlaces,
  type PlaceGroup,
  type ScheduleCertificate,
  type SameCertificate,
} from '../../../jobs/index.js';
import { formatGrouped, formatGroupedCount, plainText } from '../../../words/index.js';
import { alignTextColumns } from '../../layout/index.js';

/** Places of a kind, and shares of an error, that are listed unless all are asked for. */
const [mostPlaces, leastShare] = [8, 0.0005];

/** Names of inputs that are listed for a row. */
const mostNames = 3;

const titles = {
  certified: 'CERTIFIED',
  refuted: 'REFUTED',
  incomplete: 'NOT CERTIFIED',
} as const satisfies Record<Certificate['status'], string>;

/** A number with three digits. */
function short(value: number): string {
  return value === 0 ? '0' : value.toExponential(1).replace('e+', 'e');
}

/** "kernel.py:88 (line 1258: cvt.rn.f16x2.f32)", or the site alone. */
function placeText({ site, source }: CertificatePlace): string {
  return source === null ? site : `${sourceText(source)} (${site})`;
}

/** A gradient against that of attention. */
function gradientLine(gradient: AlgebraCertificate): string {
  const { output, rows, compared, constant, constantError, holds } = gradient;
  const { distance, idealDistance, keptDistance, weights, delta } = gradient;
  const factor =
    output === 'dv' ? '' : `, times ${constant ?? 'a factor that is no known constant'}`;
  const error =
    constantError === null || constantError === 0 ? '' : ` (${short(constantError)} from exact)`;
  const terms = `P = ${weights ?? 'unknown'}${delta === null ? '' : `, δ = ${delta}`}${factor}${error}`;
  const kept =
    keptDistance === null ? '' : `; ${short(keptDistance)} with polynomials as they are computed`;
  const of = `${formatGroupedCount(compared, 'element')} in ${formatGroupedCount(rows, 'row')}`;
  return `Algebra of ${output}: ${holds ? '' : 'not '}the gradient of softmax attention: real values within ${short(distance)} with ${terms}; ${short(idealDistance)} from the exact gradient${kept} (${of})`;
}

function algebraLine(algebra: AlgebraCertificate): string {
  return algebra.weights === null ? outputLine(algebra) : gradientLine(algebra);
}

function outputLine({
  output,
  rows,
  compared,
  distance,
  idealDistance,
  keptDistance,
  constant,
  constantError,
  holds,
}: AlgebraCertificate): string {
  const what = output === 'out' ? 'softmax attention' : 'its log-sum-exp';
  const of = `${formatGroupedCount(compared, 'element')} in ${formatGroupedCount(rows, 'row')}`;
  // A factor that is no known constant has an error all the same.
  const isOdd = constant === null && constantError !== null;
  const known = isOdd
    ? 'a factor of q·k that is no known constant'
    : (constant ?? 'exact constants, since these values tell none');
  const error =
    constantError === null || constantError === 0 ? '' : `, ${short(constantError)} from exact`;
  const ideal = `; ${short(idealDistance)} from exact ${output === 'out' ? 'attention' : 'LSE'}`;
  const kept =
    keptDistance === null ? '' : `; ${short(keptDistance)} with polynomials as they are computed`;
  return `Algebra of ${output}: ${holds ? '' : 'not '}${what}: real values within ${short(distance)} with ${known}${error}${ideal}${kept} (${of})`;
}

function idiomLine({ function: name, degree, distance, places }: IdiomCertificate): string {
  const count = places.reduce((sum, place) => sum + place.count, 0);
  const [first] = places;
  return `Taken for ${name}: ${formatGroupedCount(count, 'polynomial')} of degree ${degree}, within ${short(distance)} of it, at ${formatGroupedCount(places.length, 'place')}, first ${placeText(first)}`;
}

function coverageText({ shape, coverage }: OutputCertificate): string {
  const all = shape.reduce((product, size) => product * size, 1);
  const { meaning, ...others } = coverage;
  const rest = Object.entries(others).flatMap(([standing, count]) =>
    count === 0 ? [] : [`${formatGrouped(count)} ${standing}`],
  );
  const known = `${formatGrouped(meaning)} of ${formatGroupedCount(all, 'element')} have a meaning`;
  return rest.length === 0 ? known : `${known}, ${rest.join(', ')}`;
}

/** The rows of groups, of which the largest are shown unless all are asked for. */
function groupLines(
  groups: readonly PlaceGroup[],
  amountText: (amount: number) => string,
  isAll: boolean,
): readonly string[] {
  const shown = isAll ? groups : groups.slice(0, mostPlaces);
  const rest = groups.length - shown.length;
  return [
    ...alignTextColumns(shown.map((group) => [`  ${amountText(group.amount)}`, groupText(group)])),
    ...(rest === 0 ? [] : [`  and ${formatGroupedCount(rest, 'other place')}; --lines lists them`]),
  ];
}

function roundingLines(output: OutputCertificate, isAll: boolean): readonly string[] {
  const { name, rounding } = output;
  if (rounding === null) return [];
  const { worst, rms, largest, sampled, shares } = rounding;
  const head = `Rounding of ${name}: largest |bits − real| ${short(worst)}, RMS ${short(rms)}, where |${name}| reaches ${short(largest)}`;
  if (shares.length === 0) return [head];
  const groups = groupPlaces(shares, ({ share }) => share).filter(
    ({ amount }) => isAll || Math.abs(amount) >= leastShare,
  );
  return [
    `${head}; over ${formatGroupedCount(sampled, 'element')} it is made by`,
    ...groupLines(groups, (share) => `${(100 * share).toFixed(1)} %`, isAll),
  ];
}

/** "key 7, key 8, key 9 and 12 others in row 3, 40 input rows in all". */
function reachText({ labels, worst: [first] }: ForbiddenReach): string {
  const { row, names, labels: ofRow } = first;
  const shown = names.slice(0, mostNames);
  const rest = ofRow - shown.length;
  const others = rest === 0 ? '' : ` and ${formatGroupedCount(rest, 'other')}`;
  return `${plainText(shown.join(', '))}${others} in row ${formatGrouped(row)}, ${formatGroupedCount(labels, 'input row')} in all`;
}

function influenceLines({
  name,
  elements,
  unknown,
  withWeight,
  inStructure,
}: OutputReach): readonly string[] {
  const forbidden = 'a key, value or query that its row must not see';
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
  ];
}

function equalBitsLine(elements: number): readonly string[] {
  if (elements === 0) return [];
  return [
    `  ${formatGroupedCount(elements, 'element')} of another expression have equal bits on these inputs`,
  ];
}

function sameLines({ path, outputs }: SameCertificate): readonly string[] {
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
  return [
    `  element ${formatGrouped(element)} parts at ${placeText(here)}: ${plainText(here.what)}`,
    `  element ${formatGrouped(otherElement)} there at ${placeText(there)}: ${plainText(there.what)}`,
  ];
}

function scheduleLines({ runs, outputs }: ScheduleCertificate): readonly string[] {
  const all = formatGroupedCount(runs, 'random schedule');
  return outputs.flatMap(({ name, rows, other, lost, otherWithEqualBits, schedules, first }) => {
    const lostText = lost === 0 ? '' : `, ${formatGroupedCount(lost, 'row')} lost`;
    if (first === null)
      return [
        `Order of ${name}: ${formatGroupedCount(rows - lost, 'row')} have the same expression in ${all}${lostText}`,
      ];
    return [
      `Order of ${name}: in ${formatGrouped(schedules)} of ${all} up to ${formatGrouped(other)} of ${formatGroupedCount(rows, 'row')} have another expression${lostText}`,
      ...equalBitsLine(otherWithEqualBits),
      `  first in ${first.schedule}:`,
      ...partingLines(first),
    ];
  });
}

function placeLines(
  title: string,
  places: readonly (CertificatePlace & { readonly count: number })[],
  isAll: boolean,
): readonly string[] {
  if (places.length === 0) return [];
  const groups = groupPlaces(places, ({ count }) => count);
  return [title, ...groupLines(groups, (count) => `${formatGrouped(count)} ×`, isAll)];
}

/**
 * A certificate as text, a part after the other; long lines are not broken.
 *
 * @param isAll whether all places are listed
 */
export function renderCertificate(certificate: Certificate, isAll: boolean): string {
  const { status, reasons, launch, run, outputs, algebra, idioms, influence, same, schedules } =
    certificate;
  const { decisions, losses, silent } = certificate;
  const head = `${titles[status]}: ${plainText(launch.entry)} of ${launch.path}, ${launch.architecture}`;
  return [
    reasons.length === 0 ? head : `${head}: ${reasons.join('; ')}`,
    '',
    `Memory and order: ${run.sentence}`,
    ...run.harmlessRaces.map(
      ({ lines, races }) =>
        `  ${formatGroupedCount(races, 'race')} at lines ${lines.join(', ')}: what is loaded there becomes part of no output, decides nothing and is no address`,
    ),
    ...outputs.map((output) => `Meaning of ${output.name}: ${coverageText(output)}`),
    ...(algebra ?? []).map(algebraLine),
    ...idioms.map(idiomLine),
    ...outputs.flatMap((output) => roundingLines(output, isAll)),
    ...(influence ?? []).flatMap(influenceLines),
    ...(same === null ? [] : sameLines(same)),
    ...(schedules === null ? [] : scheduleLines(schedules)),
    ...placeLines(
      'Decisions by values: what is certified holds for inputs that decide alike',
      decisions,
      isAll,
    ),
    ...placeLines('Values are lost at', losses, isAll),
    '',
    'This does not speak of',
    ...silent.map((one) => `  ${one}`),
    '',
  ].join('\n');
}

import {
  groupPlaces,
  groupText,
  type Certificate,
  type CertificatePlace,
  type OutputCertificate,
  type PlaceGroup,
} from '../../../jobs/index.js';
import { formatGrouped, formatGroupedCount, plainText } from '../../../words/index.js';
import { alignTextColumns } from '../../layout/index.js';
import {
  algebraLine,
  certificateTitles,
  harmlessLines,
  idiomLine,
  influenceLines,
  sameLines,
  scheduleLines,
  shortNumber,
} from './certificate-words.js';

/** Places of a kind, and shares of an error, that are listed unless all are asked for. */
const [mostPlaces, leastShare] = [8, 0.0005];

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
  const head = `Rounding of ${name}: largest |bits − real| ${shortNumber(worst)}, RMS ${shortNumber(rms)}, where |${name}| reaches ${shortNumber(largest)}`;
  if (shares.length === 0) return [head];
  const groups = groupPlaces(shares, ({ share }) => share).filter(
    ({ amount }) => isAll || Math.abs(amount) >= leastShare,
  );
  return [
    `${head}; over ${formatGroupedCount(sampled, 'element')} it is made by`,
    ...groupLines(groups, (share) => `${(100 * share).toFixed(1)} %`, isAll),
  ];
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
  const { chain, contract, decisions, losses, silent } = certificate;
  const what =
    chain === null ? '' : `${formatGroupedCount(chain.length, 'launch', 'launches')}, the last `;
  const head = `${certificateTitles[status]}: ${what}${plainText(launch.entry)} of ${launch.path}, ${launch.architecture}`;
  return [
    reasons.length === 0 ? head : `${head}: ${reasons.join('; ')}`,
    '',
    ...(chain ?? []).map(({ entry, path }, i) => `Launch ${i + 1}: ${plainText(entry)} of ${path}`),
    `Memory and order: ${run.sentence}`,
    ...harmlessLines(run),
    ...outputs.map((output) => `Meaning of ${output.name}: ${coverageText(output)}`),
    ...(algebra ?? []).map((one) => algebraLine(one, contract)),
    ...idioms.map(idiomLine),
    ...outputs.flatMap((output) => roundingLines(output, isAll)),
    ...(influence ?? []).flatMap((one) => influenceLines(one, contract)),
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

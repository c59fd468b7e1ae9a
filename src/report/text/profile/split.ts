import type { CrossingBreaks, SplitProfile, TuningLanes } from '../../../profile/index.js';
import { domainText, type DomainStyle } from './domain.js';
import { headText, terminalWidth } from './head.js';
import { worstInputsText } from './inputs.js';
import {
  formatCertainDigits,
  formatDigits,
  formatFloat32,
  formatGrouped,
  formatPercentage,
} from '../../../words/index.js';
import { alignTextColumns, alignColumns } from '../../layout/index.js';

/** Runs of one letter as "6h 4p". */
function runs(lanes: string): string {
  return [...lanes.matchAll(/h+|p+/g)].map(([run]) => `${run.length}${run[0]}`).join(' ');
}

/** The first fragment of each kind, with the number of its kind. */
function fragmentTexts({ fragments }: TuningLanes): string {
  const texts = fragments.map(runs);
  return texts
    .map((text, i) => (text === texts[i - 1] ? '' : text))
    .map((text, i) => {
      if (text === '') return '';
      const next = texts.findIndex((other, j) => j > i && other !== text);
      const count = (next < 0 ? texts.length : next) - i;
      return count === 1 ? text : `${count} × (${text})`;
    })
    .filter((text) => text !== '')
    .join(' | ');
}

function tuningsText(tunings: readonly TuningLanes[]): string[] {
  const rows = tunings.map((tuning) => [
    tuning.name,
    formatPercentage(tuning.polynomialShare),
    String(tuning.mixedNeighbours),
    fragmentTexts(tuning),
  ]);
  return [
    'Lanes of a row of 128 columns by tuning entry: h hardware, p polynomial, fragments of 32',
    '',
    ...alignTextColumns([['', 'polynomial', 'h|p borders', 'columns'], ...rows], terminalWidth),
    '',
  ];
}

/** The row of a single entry, a letter per column. */
function picture([tuning, ...others]: readonly TuningLanes[]): string[] {
  if (tuning === undefined || others.length > 0) return [];
  return [
    `Columns of ${tuning.name}`,
    '',
    ...tuning.fragments.map((lanes, i) => `  ${String(32 * i).padStart(3)}  ${lanes}`),
    '',
  ];
}

function crossingCells({ count, largestUlps, largestAt }: CrossingBreaks): string[] {
  return [
    formatGrouped(count),
    formatDigits(largestUlps),
    largestAt === null ? '' : `${largestAt.inputBits} = ${formatFloat32(largestAt.input)}`,
  ];
}

/** The profile of the split as text. */
export function splitText(profile: SplitProfile): string[] {
  const { domains, tunings, steps, crossings, reference, functions } = profile;
  const style: DomainStyle = {
    reference,
    baseline: functions[0].name,
    shares: 'none',
    variable: 'x',
  };
  return [
    ...headText(profile),
    ...tuningsText(tunings),
    ...picture(tunings),
    'The step in fp32',
    '',
    ...alignColumns(
      [
        ['', 'least', 'most', 'order unsure below'],
        ...steps
          .filter(({ least }) => least !== null)
          .map(({ domain, name, least, most, reach }) => [
            `${name}, ${domain}`,
            formatCertainDigits(least, reference.certainty),
            formatCertainDigits(most, reference.certainty),
            `Δx = ${formatDigits(reach)}`,
          ]),
      ],
      terminalWidth,
    ),
    '',
    ...domains.flatMap((domain) => [...domainText(domain, style), ...worstInputsText(domain)]),
    'Neighbouring inputs in the wrong order on different lanes',
    '',
    ...alignTextColumns(
      [
        ['', '', 'smaller x', 'pairs', 'largest, ulps', 'at'],
        ...crossings.flatMap(({ domain, name, format, hardwareFirst, polynomialFirst }) => [
          [`${name}, ${domain}`, format, 'hardware', ...crossingCells(hardwareFirst)],
          ['', '', 'polynomial', ...crossingCells(polynomialFirst)],
        ]),
      ],
      terminalWidth,
    ),
    '',
  ];
}

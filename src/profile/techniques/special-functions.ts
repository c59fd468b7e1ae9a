import { formats, smallestNormal } from '../../formats/index.js';
import {
  type CandidateName,
  createCandidates,
  evidenceOf,
  type ReferenceName,
  referenceReport,
} from '../functions.js';
import type { Cell, Domain, InputRange } from '../cells.js';
import type { Measure } from '../error-plan.js';
import { beyond, cellOf, nanCells } from './input-cells.js';
import { reportCorners } from '../corners.js';
import { reportDomains } from '../error-report.js';
import { sweepErrors } from '../error-sweep.js';
import {
  type FunctionErrorProfile,
  type ProfileOptions,
  linearPanel,
  logarithmicPanel,
  type Panel,
  plotsOf,
} from './profile.js';

/** An instruction of the special function unit, and the settings of its profile. */
interface UnitProfile {
  readonly title: string;
  readonly instruction: CandidateName;
  readonly reference: ReferenceName;
  readonly increasing: boolean;
  readonly measures: readonly Measure[];
  /** A bound on the exact values, where absolute errors are measured. */
  readonly largestExact: number | null;
  readonly cells: readonly Cell[];
  readonly domains: readonly Domain[];
  /** The ends of the plots: over many binades, and over the binades that repeat. */
  readonly plotted: { readonly all: readonly [number, number]; readonly period: number };
  readonly notes: readonly string[];
}

/** The profiled instructions by the technique's name. */
type UnitTechnique = 'rcp' | 'log2' | 'rsqrt';

const smallest = smallestNormal(formats.fp32);
const largest = formats.fp32.maxFinite;
const relative: Measure = { rounding: { format: 'fp32', overflow: 'overflow' }, error: 'relative' };
const absolute: Measure = { ...relative, error: 'absolute' };

const named =
  (...labels: readonly string[]) =>
  ({ label }: Cell): boolean =>
    labels.includes(label);

const anyCell = (): boolean => true;

const reciprocalCells: readonly Cell[] = [
  nanCells.negative,
  cellOf('-inf', [-Infinity, -Infinity], '-0'),
  cellOf('x < -2^126', [-largest, beyond(-(2 ** 126))], '-2^-126 to -2^-128, subnormal'),
  cellOf('-2^126 <= x <= -2^-126', [-(2 ** 126), -smallest], '1/x', true),
  cellOf('x < 0 subnormal', [beyond(-smallest), beyond(-0)], 'below -2^126'),
  cellOf('-0', [-0, -0], '-inf'),
  cellOf('+0', [0, 0], '+inf'),
  cellOf('x > 0 subnormal', [beyond(0), beyond(smallest)], 'above 2^126'),
  cellOf('2^-126 <= x <= 2^126', [smallest, 2 ** 126], '1/x', true),
  cellOf('x > 2^126', [beyond(2 ** 126), largest], '2^-128 to 2^-126, subnormal'),
  cellOf('+inf', [Infinity, Infinity], '+0'),
  nanCells.positive,
];

/** The cells of a function that is defined for positive numbers. */
function positiveCells(
  exact: { readonly zero: readonly [string, string]; readonly tiny: string; readonly end: string },
  normal: readonly Cell[],
): readonly Cell[] {
  return [
    nanCells.negative,
    cellOf('x < 0, -inf included', [-Infinity, -smallest], 'NaN'),
    cellOf('x < 0 subnormal', [beyond(-smallest), beyond(-0)], 'NaN'),
    cellOf('-0', [-0, -0], exact.zero[0]),
    cellOf('+0', [0, 0], exact.zero[1]),
    cellOf('x > 0 subnormal', [beyond(0), beyond(smallest)], exact.tiny),
    ...normal,
    cellOf('+inf', [Infinity, Infinity], exact.end),
    nanCells.positive,
  ];
}

/** The profile of each instruction; all in fp32. */
export const unitProfiles: Readonly<Record<UnitTechnique, UnitProfile>> = {
  rcp: {
    title: '1/x by the special function unit',
    instruction: 'rcp.approx.ftz.f32',
    reference: 'reciprocal',
    increasing: false,
    measures: [relative],
    largestExact: null,
    cells: reciprocalCells,
    domains: [{ label: '2^-126 <= |x| <= 2^126', has: anyCell }],
    plotted: { all: [smallest, 2 ** 127], period: 2 },
    notes: [],
  },
  log2: {
    title: 'log2 x by the special function unit',
    instruction: 'lg2.approx.ftz.f32',
    reference: 'log2',
    increasing: true,
    measures: [absolute, relative],
    largestExact: 128,
    cells: positiveCells({ zero: ['-inf', '-inf'], tiny: '-149 to -126', end: '+inf' }, [
      cellOf('2^-126 <= x <= 1/2', [smallest, 0.5], 'log2 x', true),
      cellOf('1/2 < x < 1', [beyond(0.5), beyond(1)], 'log2 x', true),
      cellOf('1', [1, 1], '0', true),
      cellOf('1 < x < 2', [beyond(1), beyond(2)], 'log2 x', true),
      cellOf('x >= 2', [2, largest], 'log2 x', true),
    ]),
    domains: [
      { label: '2^-126 <= x <= 1/2', has: named('2^-126 <= x <= 1/2') },
      { label: '1/2 < x < 2', has: named('1/2 < x < 1', '1', '1 < x < 2') },
      { label: 'x >= 2', has: named('x >= 2') },
    ],
    plotted: { all: [smallest, 2 ** 127], period: 2 },
    notes: [
      'Near 1 the logarithm goes to 0 but the unit works on a fixed grid of 2^-36: its relative error and its error in ulps have no small bound there. Between 1/2 and 2 go by the absolute error.',
    ],
  },
  rsqrt: {
    title: '1/√x by the special function unit',
    instruction: 'rsqrt.approx.ftz.f32',
    reference: 'reciprocal square root',
    increasing: false,
    measures: [relative],
    largestExact: null,
    cells: positiveCells({ zero: ['-inf', '+inf'], tiny: '2^63 to 2^74.5', end: '+0' }, [
      cellOf('normal x > 0', [smallest, largest], '1/√x', true),
    ]),
    domains: [{ label: 'normal x > 0', has: anyCell }],
    plotted: { all: [smallest, 2 ** 127], period: 4 },
    notes: [],
  },
};

/** The profile of one instruction of the special function unit. */
export interface UnitErrorProfile extends FunctionErrorProfile {
  readonly technique: UnitTechnique;
}

function unitPanels({ plotted }: UnitProfile, { from, to }: InputRange): Panel[] {
  const [low, high] = plotted.all;
  if (from !== undefined || to !== undefined)
    return [linearPanel('x', from ?? low, to ?? plotted.period)];
  return [
    logarithmicPanel('x', low, high),
    linearPanel(`x from 1 to ${plotted.period}`, 1, plotted.period),
  ];
}

/**
 * Profiles an instruction of the special function unit against the exact function at every fp32 input
 * of the range.
 * @throws RequestError for a range without an input that has an error
 */
export async function profileUnit(
  technique: UnitTechnique,
  options: ProfileOptions = {},
): Promise<UnitErrorProfile> {
  const unit = unitProfiles[technique];
  const { range = {}, architecture } = options;
  const { measures, reference, increasing, cells, domains } = unit;
  const panels = unitPanels(unit, range);
  const draft = {
    candidates: [unit.instruction],
    reference,
    measures,
    increasing,
    panels: panels.map(({ boundaries }) => boundaries),
  };
  const sweep = await sweepErrors(draft, cells, range, options);
  return {
    technique,
    title: unit.title,
    range,
    functions: [evidenceOf(unit.instruction, architecture)],
    reference: referenceReport(reference, unit.largestExact),
    domains: reportDomains(sweep, domains, createCandidates()),
    corners: reportCorners(sweep),
    plots: plotsOf(sweep, panels, `${measures[0].error} error in fp32`),
    notes: unit.notes,
  };
}

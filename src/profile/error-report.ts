import type { ArrayFunction } from '../simd/index.js';
import type { CandidateName } from './functions.js';
import type { Domain } from './cells.js';
import type { Measure } from './error-plan.js';
import { domainErrors, type ErrorSweep } from './error-sweep.js';
import {
  type Errors,
  quotient,
  selectCount,
  type Totals,
  weigh,
  weighSum,
  type Weighting,
  weightings,
} from './errors.js';
import { binCount, binStart, type CountName, type Extreme, type SumName } from './record.js';
import { createInputView, type InputView } from './input-view.js';

/** One input with its result and the exact value. */
interface ErrorExample extends InputView {
  /** The error of this example, in the unit of its list. */
  readonly error: number;
}

/** Two neighbouring inputs whose results are in the wrong order. */
export interface BreakExample {
  readonly smaller: InputView;
  readonly larger: InputView;
}

/** Means and shares over inputs; a mean is null where no error is measured. */
export interface Averages {
  readonly weighting: Weighting;
  /** The scaled error: its signed mean, the mean of its magnitude, and its root mean square. */
  readonly mean: number | null;
  readonly meanMagnitude: number | null;
  readonly rootMeanSquare: number | null;
  /** The same values for the ulp error. */
  readonly meanUlp: number | null;
  readonly meanMagnitudeUlp: number | null;
  readonly rootMeanSquareUlp: number | null;
  /** Shares of all inputs. */
  readonly notCorrectlyRounded: number;
  readonly differing: number;
  readonly zeros: number;
  readonly subnormals: number;
}

/** A bin of the histogram of |ulp error|, from `from` ulps up to the next bin's. */
export interface HistogramBin {
  readonly from: number;
  /** Null for the last bin. */
  readonly to: number | null;
  readonly inputs: number;
  /** Share of the inputs whose ulp error is measured, each weighted by its ulp. */
  readonly shareUniform: number;
}

/** The errors of one function in one measure over one domain. */
export interface MeasureReport extends Measure {
  /** Inputs at which the scaled error, and at which the ulp error, is measured. */
  readonly scaledInputs: number;
  readonly ulpInputs: number;
  readonly notCorrectlyRounded: number;
  /** Number of results that differ from the first function's rounded result. */
  readonly differing: number;
  readonly zeros: number;
  readonly subnormals: number;
  readonly nonFinite: number;
  /** The inputs with the largest |scaled error| and |ulp error|, the largest first. */
  readonly largest: readonly ErrorExample[];
  readonly largestUlp: readonly ErrorExample[];
  readonly breaks: {
    readonly count: number;
    /** The largest breaks, by size in ulps. */
    readonly largest: readonly (BreakExample & { readonly ulps: number })[];
    readonly first: readonly BreakExample[];
  };
  readonly averages: readonly Averages[];
  /** Bins with inputs. */
  readonly histogram: readonly HistogramBin[];
}

/** The errors of one function over one domain. */
export interface FunctionReport {
  readonly name: CandidateName;
  readonly measures: readonly MeasureReport[];
}

/** The errors of all functions over one domain. */
export interface DomainReport {
  readonly label: string;
  readonly inputs: number;
  readonly functions: readonly FunctionReport[];
}

function averagesOf(errors: Errors, weighting: Weighting): Averages {
  const all = weigh(errors, weighting, ({ inputs }) => inputs);
  const share = (name: CountName): number =>
    Number(weigh(errors, weighting, selectCount(name))) / Number(all);
  const mean = (name: SumName, select: (totals: Totals) => number): number | null => {
    const weight = weigh(errors, weighting, select);
    return weight === 0n ? null : quotient(weighSum(errors, weighting, name), weight);
  };
  const scaled = (name: SumName): number | null => mean(name, (totals) => totals.scaled);
  const ulp = (name: SumName): number | null => mean(name, (totals) => totals.ulp);
  const root = (square: number | null): number | null =>
    square === null ? null : Math.sqrt(square);
  return {
    weighting,
    mean: scaled('scaled'),
    meanMagnitude: scaled('scaledMagnitude'),
    rootMeanSquare: root(scaled('scaledSquare')),
    meanUlp: ulp('ulp'),
    meanMagnitudeUlp: ulp('ulpMagnitude'),
    rootMeanSquareUlp: root(ulp('ulpSquare')),
    notCorrectlyRounded: share('notCorrectlyRounded'),
    differing: share('differing'),
    zeros: share('zeros'),
    subnormals: share('subnormals'),
  };
}

function histogramOf(errors: Errors): HistogramBin[] {
  const measured = Number(weigh(errors, 'uniform in x', ({ ulp }) => ulp));
  return Array.from({ length: binCount }, (_, bin) => ({
    from: binStart(bin),
    to: bin === binCount - 1 ? null : binStart(bin + 1),
    inputs: Number(weigh(errors, 'every number', ({ histogram }) => histogram[bin])),
    shareUniform:
      Number(weigh(errors, 'uniform in x', ({ histogram }) => histogram[bin])) / measured,
  })).filter(({ inputs }) => inputs > 0);
}

/** Evaluates the functions at an input again. */
type Look = (ordinal: number) => InputView;

function measureReport(errors: Errors, measure: Measure, look: Look): MeasureReport {
  const total = (select: (totals: Totals) => number): number =>
    Number(weigh(errors, 'every number', select));
  const count = (name: CountName): number => total(selectCount(name));
  const example = ({ value, ordinal }: Extreme): ErrorExample => ({
    error: value,
    ...look(ordinal),
  });
  const broken = (ordinal: number): BreakExample => ({
    smaller: look(ordinal),
    larger: look(ordinal + 1),
  });
  const { breaks } = errors;
  return {
    ...measure,
    scaledInputs: total(({ scaled }) => scaled),
    ulpInputs: total(({ ulp }) => ulp),
    notCorrectlyRounded: count('notCorrectlyRounded'),
    differing: count('differing'),
    zeros: count('zeros'),
    subnormals: count('subnormals'),
    nonFinite: count('nonFinite'),
    largest: errors.largestScaled.map(example),
    largestUlp: errors.largestUlp.map(example),
    breaks: {
      count: breaks.count,
      largest: breaks.largest.map(({ value, ordinal }) => ({ ulps: value, ...broken(ordinal) })),
      first: breaks.first.map(broken),
    },
    averages: weightings.map((weighting) => averagesOf(errors, weighting)),
    histogram: histogramOf(errors),
  };
}

/**
 * The results of a sweep by domain; domains without an input in the swept range are left out.
 * @param functions the functions by name, to look at single inputs again
 */
export function reportDomains(
  sweep: ErrorSweep,
  domains: readonly Domain[],
  functions: ReadonlyMap<CandidateName, ArrayFunction>,
): DomainReport[] {
  const { plan, cells } = sweep;
  const view = createInputView(plan, functions);
  return domains
    .map((domain) => ({
      label: domain.label,
      inputs: cells
        .filter(({ cell }) => cell.isMeasured && domain.has(cell))
        .reduce((sum, { cell }) => sum + cell.last - cell.first + 1, 0),
      functions: plan.candidates.map((name, c) => ({
        name,
        measures: plan.measures.map((measure, m) =>
          measureReport(domainErrors(sweep, domain, c, m), measure, (ordinal) =>
            view(ordinal, name, measure),
          ),
        ),
      })),
    }))
    .filter(({ inputs }) => inputs > 0);
}

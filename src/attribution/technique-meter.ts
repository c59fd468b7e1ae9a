import type { Interaction, TechniqueAttribution, TechniquePart } from './attribution.js';
import { ErrorMeter, type ErrorUnits } from './error-measure.js';
import { Projection } from './projection.js';
import { LseMeter } from './lse-measure.js';
import type { RunPlan } from './run-plan.js';

/** The technique's part in the error of the run `whole`, without it that of the run `without`. */
function createPartMeter(units: ErrorUnits, whole: number, without: number) {
  const [last, left] = [new ErrorMeter(units), new ErrorMeter(units)];
  const [share, shareAlone] = [new Projection(), new Projection()];
  return {
    /** Takes the element's value in every run, what the technique adds, and its error alone. */
    add: (element: number, values: Float64Array, added: number, alone: number): void => {
      const exact = units.exact[element];
      const unit = units.perMagnitude[element];
      const error = (values[whole] - exact) * unit;
      last.add(element, values[whole] - values[without]);
      left.add(element, values[without] - exact);
      share.add(added * unit, error);
      shareAlone.add(alone * unit, error);
    },
    result: (): TechniquePart => ({
      last: last.measure(),
      without: left.measure(),
      share: share.share(),
      shareAlone: shareAlone.share(),
    }),
  };
}

/** Measures what one technique has to do with the errors, from the outputs of the planned runs. */
export function createTechniqueMeter(technique: string, plan: RunPlan, units: ErrorUnits) {
  const before = plan.techniques[plan.techniques.indexOf(technique) - 1];
  const previous = before === undefined ? plan.none : plan.upTo[before];
  const unrounded = plan.without['output-round'];
  const alone = new ErrorMeter(units);
  const lse = new LseMeter();
  const whole = createPartMeter(units, plan.all, plan.without[technique]);
  const beforeRounding =
    technique === 'output-round'
      ? null
      : createPartMeter(units, unrounded, plan.withoutUnrounded[technique]);
  return {
    /** Takes the element's value in every run. */
    add: (element: number, values: Float64Array): void => {
      const aloneError = values[plan.alone[technique]] - units.exact[element];
      const added = values[plan.upTo[technique]] - values[previous];
      alone.add(element, aloneError);
      whole.add(element, values, added, aloneError);
      beforeRounding?.add(element, values, added, aloneError);
    },
    /** Takes a row's LSE in the run in which the technique alone is emulated, and the exact one. */
    addLse: (aloneLse: number, exact: number): void => lse.add(aloneLse, exact),
    result: (): TechniqueAttribution => ({
      technique,
      alone: alone.measure(),
      lse: lse.measure(),
      whole: whole.result(),
      beforeRounding: beforeRounding?.result() ?? null,
    }),
  };
}

/** What the techniques alone leave of the errors. */
export function interactionOf(attributed: readonly TechniqueAttribution[]): Interaction {
  const rest = (shareOf: (part: TechniqueAttribution) => number): number =>
    1 - attributed.reduce((sum, part) => sum + shareOf(part), 0);
  return {
    whole: rest(({ whole }) => whole.shareAlone),
    beforeRounding: rest(({ beforeRounding }) => beforeRounding?.shareAlone ?? 0),
  };
}

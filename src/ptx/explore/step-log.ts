import type { ClusterStep, Scheduler, Step } from '../../machine/index.js';
import type { ClusterPlan } from '../run/index.js';

/**
 * Numbers for the names of things that may take steps: the same thing has the same number in every run of an
 * exploration.
 */
export interface StepNames {
  readonly numberOf: (cluster: number, step: Step) => number;
  readonly clusterOf: (number: number) => number;
}

/**
 * An empty set of names. A warp, a strand of it or an operation is named by its cluster, its warp and its place in the
 * program.
 */
export function createStepNames(): StepNames {
  const numbers = new Map<string, number>();
  const clusters: number[] = [];
  const known = new WeakMap<Step, number>();
  return {
    numberOf: (cluster, step) => {
      const before = known.get(step);
      if (before !== undefined) return before;
      const name =
        step.chosenAs === 'warp'
          ? `${cluster} ${step.name}`
          : `${cluster} ${step.warp.name} ${step.kind} ${step.site}`;
      let number = numbers.get(name);
      if (number === undefined) {
        numbers.set(name, (number = clusters.length));
        clusters.push(cluster);
      }
      known.set(step, number);
      return number;
    },
    clusterOf: (number) => clusters[number],
  };
}

/** Two unordered steps, by their places in a run, each of which may change the result of the other. */
type DependentSteps = readonly [earlier: number, later: number];

/** The steps of a run, one by one. */
export interface StepLog {
  /** The taker of each step, all clusters together. */
  readonly steps: Int32Array;
  readonly dependent: readonly DependentSteps[];
  /** Whether a step only polled. */
  readonly isPoll: (step: number) => boolean;
}

/** A run that follows a plan and is logged. */
export interface LoggedRun {
  readonly plan: ClusterPlan;
  readonly scheduler: (cluster: number) => Scheduler;
  readonly onDependence: (earlier: ClusterStep) => void;
  readonly onStep: (isMore: boolean) => void;
  readonly log: () => StepLog;
}

/** Steps as they are taken, and those that depend on one another. */
class StepRecord {
  #running = 0;
  readonly #steps: number[] = [];
  readonly #polls = new Set<number>();
  /** By cluster: the place of each of its steps in the run. */
  readonly #places: number[][] = [];
  readonly #dependent: DependentSteps[] = [];
  readonly #known = new Set<string>();

  take(cluster: number, taker: number): void {
    this.#running = cluster;
    (this.#places[cluster] ??= []).push(this.#steps.length);
    this.#steps.push(taker);
  }

  /** The latest step only polled. */
  markPoll(): void {
    this.#polls.add(this.#steps.length - 1);
  }

  /**
   * The latest step depends on an earlier one.
   *
   * @param ctas CTAs of a cluster
   */
  addDependence({ cta, step }: ClusterStep, ctas: number): void {
    const cluster = cta === undefined ? this.#running : Math.floor(cta / ctas);
    const earlier = this.#places[cluster]?.[step];
    const later = this.#steps.length - 1;
    if (earlier === undefined || earlier >= later) return;
    // One access, word after word.
    const name = `${earlier} ${later}`;
    if (this.#known.has(name)) return;
    this.#known.add(name);
    this.#dependent.push([earlier, later]);
  }

  log(): StepLog {
    return {
      steps: Int32Array.from(this.#steps),
      dependent: this.#dependent,
      isPoll: (step) => this.#polls.has(step),
    };
  }
}

/**
 * Follows a plan, then other schedulers, and logs the taker of each step and the steps that depend on one another. Memory grows with
 * the steps.
 *
 * @param planned the takers of the first steps, by `names`; takers that may not act are left out
 * @param ctas CTAs of a cluster
 * @param usual the scheduler of a cluster after the plan
 */
export function logRun(
  names: StepNames,
  planned: Int32Array,
  ctas: number,
  usual: () => Scheduler,
): LoggedRun {
  const record = new StepRecord();
  let next = 0;
  /** The step of a cluster that polled last: another step goes first. */
  let polled: Step | null = null;
  let last: Step | null = null;

  /** Schedules as usual, except that the step that has just polled comes last. */
  function unplanned(rest: Scheduler, candidates: readonly Step[]): number {
    const choice = rest.choose(candidates);
    return candidates[choice] === polled ? (choice + 1) % candidates.length : choice;
  }

  const isPlanned = (cluster: number) => (step: Step) =>
    next < planned.length && names.numberOf(cluster, step) === planned[next];

  return {
    plan: {
      cluster: () => (next < planned.length ? names.clusterOf(planned[next]) : null),
      isNext: (step) => isPlanned(names.clusterOf(planned[next]))(step),
      skip: () => next++,
    },
    scheduler: (cluster) => {
      const rest = usual();
      return {
        name: rest.name,
        choose: (candidates) => {
          const asPlanned = candidates.findIndex(isPlanned(cluster));
          if (asPlanned !== -1) next++;
          const choice = asPlanned === -1 ? unplanned(rest, candidates) : asPlanned;
          last = candidates[choice];
          record.take(cluster, names.numberOf(cluster, last));
          return choice;
        },
      };
    },
    onDependence: (earlier) => record.addDependence(earlier, ctas),
    onStep: (isMore) => {
      if (!isMore) record.markPoll();
      polled = isMore ? null : last;
    },
    log: () => record.log(),
  };
}

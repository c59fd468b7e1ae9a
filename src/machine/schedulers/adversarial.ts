import type { Scheduler } from '../scheduler.js';
import type { OperationKind, Step } from '../state.js';

/** The first step of the least rank. */
function byRank(name: string, rankOf: (step: Step) => number): Scheduler {
  return {
    name,
    choose: (steps) => {
      let best = 0;
      let least = Infinity;
      steps.forEach((step, i) => {
        const rank = rankOf(step);
        if (rank < least) [best, least] = [i, rank];
      });
      return best;
    },
  };
}

const operationKinds: readonly OperationKind[] = [
  ...(['mma', 'copy', 'commit', 'tensor-load', 'tensor-store', 'bulk-load', 'bulk-store'] as const),
];

/**
 * Schedules that favour or starve one thing as far as they may: each warp last, each warp first, each
 * kind of operation as late and as early as allowed, the warps backwards, the youngest operation first.
 *
 * @param warps how many warps a CTA has
 */
export function adversarialSchedulers(warps: number): readonly Scheduler[] {
  const isWarp = (step: Step, index: number): boolean =>
    step.chosenAs === 'warp' && step.index === index;
  const each = Array.from({ length: warps }, (_, index) => index);
  let youngest = 0;
  return [
    ...each.map((index) => byRank(`warp ${index} last`, (step) => (isWarp(step, index) ? 1 : 0))),
    ...each.map((index) => byRank(`warp ${index} first`, (step) => (isWarp(step, index) ? 0 : 1))),
    ...operationKinds.map((kind) =>
      byRank(`${kind} late`, (step) =>
        step.chosenAs === 'operation' && step.kind === kind ? 1 : 0,
      ),
    ),
    ...operationKinds.map((kind) =>
      byRank(`${kind} early`, (step) =>
        step.chosenAs === 'operation' && step.kind === kind ? 0 : 1,
      ),
    ),
    byRank('all operations late', (step) => (step.chosenAs === 'operation' ? 1 : 0)),
    byRank('CTA 1 first', (step) =>
      (step.chosenAs === 'warp' ? step.cta.rank : step.warp.cta.rank) === 1 ? 0 : 1,
    ),
    byRank('warps backwards', (step) => (step.chosenAs === 'warp' ? -step.index : 0)),
    byRank('youngest operation first', () => --youngest),
  ];
}

import type { Stage } from './audit-plan.js';
import type { AuditStages, Measured } from './audit-stages.js';
import type { PartRequest, PartResults } from './measure-part.js';
import {
  measureRequestHere,
  type LocalParts,
  type PartRunner,
  type StageProgress,
} from './run-stages.js';

/**
 * Kinds of requests that a helper measures for a problem that is not divided: textbook attention beside the exact values,
 * then about half of the measurements that follow them, and nothing whose answer is as large as the bounds.
 */
const ofHelper: ReadonlySet<PartRequest['kind']> = new Set(['structure', 'yardstick']);

/** A request with its stage, and its place among that stage's requests. */
interface Placed {
  readonly stage: Stage;
  readonly request: PartRequest;
  readonly index: number;
}

/**
 * Measures all stages in this thread and, at the same time, by a helper: each takes its kinds of requests of the stages
 * that do not depend on one another. Results are settled in the order of the stages, as if this thread had measured all.
 */
export async function runStagesBeside(
  helper: PartRunner,
  stages: AuditStages,
  local: LocalParts,
  progress: StageProgress,
): Promise<Measured> {
  for (;;) {
    const next = stages.next();
    if (next.done === true) return next.value;
    const all = next.value.flatMap((stage) =>
      stage.requests.map((request, index): Placed => ({ stage, request, index })),
    );
    const away = all.filter(({ request }) => ofHelper.has(request.kind));
    const results = new Map<Placed, PartResults[PartRequest['kind']]>();
    const asked = helper.run(
      away.map(({ request }) => request),
      ({ result }, at) => void results.set(away[at], result),
      () => undefined,
    );
    // Begun once the helper has its requests; an error here is thrown when the helper is done.
    const measured = Promise.resolve().then(() => {
      for (const placed of all) {
        const { stage, request, index } = placed;
        if (ofHelper.has(request.kind)) continue;
        const inner = (done: number) =>
          progress(stage.name, (index + done) / stage.requests.length);
        results.set(placed, measureRequestHere(request, local, inner));
      }
    });
    const outcomes = await Promise.allSettled([measured, asked]);
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    for (const placed of all) {
      placed.stage.settle(results.get(placed)!, placed.index);
      progress(placed.stage.name, (placed.index + 1) / placed.stage.requests.length);
    }
  }
}

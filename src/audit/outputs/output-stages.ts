import type { Stages } from '../conduct/stage.js';
import type { OutputMeasurements } from '../parts/audit-plan.js';
import { auditStages } from '../parts/audit-stages.js';
import type { PartAnswer } from '../parts/measure-apart.js';
import { measurePart, type PartRequest } from '../parts/measure-part.js';
import { firstRowOf } from '../parts/part-plan.js';
import { partTensors, visitInWhole } from '../parts/part-tensors.js';
import type { PreparedAudit } from './plan-audit.js';

/**
 * Kinds of requests that a helper measures for a problem that is not divided: textbook attention beside the exact values,
 * then about half of the measurements that follow them, and nothing whose answer is as large as the bounds.
 */
const ofHelper: ReadonlySet<PartRequest['kind']> = new Set(['structure', 'yardstick']);

/** The measurements of a planned audit, stage by stage: a visitor of bounds sees them in the order of their rows. */
export function* outputStages(prepared: PreparedAudit): Stages<OutputMeasurements> {
  const { problem, given, options, plan, source } = prepared;
  const { shape, settings, parts } = plan;
  const { onReference, onBounds, memories } = options;
  const visitorOf = ({ parts: [first] }: PartRequest) =>
    onBounds && visitInWhole(onBounds, firstRowOf(first, shape));
  const measure = (request: PartRequest, progress: (done: number) => void): PartAnswer => {
    const visitBounds = request.kind === 'bounds' ? visitorOf(request) : undefined;
    const tensors = request.parts.map((part) => partTensors(problem, given, shape, part));
    const callbacks = {
      progress,
      ...(memories && { memories }),
      ...(visitBounds && { visitBounds }),
    };
    return { result: measurePart(request, tensors, settings, callbacks), bounds: [] };
  };
  const planned = auditStages(plan, onReference);
  for (;;) {
    const next = planned.next();
    if (next.done === true) return next.value;
    yield next.value.map(({ name, requests, settle }) => ({
      name,
      requests,
      data: settings,
      isDivided: parts.length > 1 || source !== null,
      isForHelper: ({ kind }: PartRequest) => ofHelper.has(kind),
      measure,
      settle: (answer: PartAnswer, index: number) => {
        const { bounds } = answer;
        const visit = bounds.length === 0 ? undefined : visitorOf(requests[index]);
        for (const bound of bounds) visit?.(bound);
        settle(answer, index);
      },
    }));
  }
}

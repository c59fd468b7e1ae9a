import type { WorkingMemories } from '../../../oracles/index.js';
import type { AuditStages, Measured } from './audit-stages.js';
import type { PartAnswer } from './measure-apart.js';
import type {
  PartCallbacks,
  PartRequest,
  PartResults,
  PartSettings,
  PartTensors,
} from './measure-part.js';
import { measurePart } from './measure-part.js';
import type { Part } from './part-plan.js';

/** Called with a stage's name and the share of it that is done. */
export type StageProgress = (stage: string, done: number) => void;

/** Measures requests somewhere else, in threads perhaps. */
export interface PartRunner<Request = PartRequest, Answer = PartAnswer> {
  /**
   * Measures the requests and settles their answers in the requests' order.
   * @param done called with how many are measured, now and then
   */
  readonly run: (
    requests: readonly Request[],
    settle: (answer: Answer, index: number) => void,
    done: (count: number) => void,
  ) => Promise<void>;
}

/** Data and settings for measuring in this thread. */
export interface LocalParts {
  readonly read: (part: Part) => PartTensors;
  readonly settings: PartSettings;
  /** The visitor of the bounds of a part as they are made. */
  readonly boundsVisitor: (part: Part) => PartCallbacks['visitBounds'];
  /** Memories that the loops work in. */
  readonly memories: WorkingMemories;
}

/** Measures one request in this thread. */
export function measureRequestHere(
  request: PartRequest,
  { read, settings, boundsVisitor, memories }: LocalParts,
  progress: (done: number) => void,
): PartResults[PartRequest['kind']] {
  const visitBounds = request.kind === 'bounds' ? boundsVisitor(request.parts[0]) : undefined;
  return measurePart(request, request.parts.map(read), settings, {
    progress,
    memories,
    ...(visitBounds === undefined ? {} : { visitBounds }),
  });
}

/** Measures all stages in this thread. */
export function runStages(
  stages: AuditStages,
  local: LocalParts,
  progress: StageProgress,
): Measured {
  for (;;) {
    const next = stages.next();
    if (next.done === true) return next.value;
    for (const { name, requests, settle } of next.value)
      requests.forEach((request, index) => {
        const inner = (done: number) => progress(name, (index + done) / requests.length);
        settle(measureRequestHere(request, local, inner), index);
        inner(1);
      });
  }
}

/** Measures all stages by a runner; a visitor of bounds sees them in their order. */
export async function runStagesBy(
  runner: PartRunner,
  stages: AuditStages,
  boundsVisitor: LocalParts['boundsVisitor'],
  progress: StageProgress,
): Promise<Measured> {
  for (;;) {
    const next = stages.next();
    if (next.done === true) return next.value;
    for (const { name, requests, settle } of next.value)
      await runner.run(
        requests,
        ({ result, bounds }, index) => {
          const visit = bounds.length === 0 ? undefined : boundsVisitor(requests[index].parts[0]);
          for (const bound of bounds) visit?.(bound);
          settle(result, index);
        },
        (count) => progress(name, count / requests.length),
      );
  }
}

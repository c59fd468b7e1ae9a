import { canRedraw, createProgressLine } from './progress.js';

/** How often a line of progress is written where there is no terminal to redraw it on. */
const plainMilliseconds = 10_000;

/** Shows the progress of one long piece of work. */
export interface PeriodicProgress {
  readonly update: (share: number) => void;
  readonly done: () => void;
}

/**
 * Progress with an estimate of the time left on stderr: a redrawn line on a terminal, elsewhere (in a
 * log, say) a plain line every ten seconds, so that nobody takes long work for dead.
 */
export function createPeriodicProgress(
  stage: string,
  stream: NodeJS.WriteStream = process.stderr,
  clock: () => number = () => performance.now(),
): PeriodicProgress {
  const start = clock();
  const line = createProgressLine(stream, clock);
  let last = start;
  return {
    update: (share) => {
      if (canRedraw(stream)) return line.update(stage, share);
      const now = clock();
      if (now - last < plainMilliseconds || share <= 0) return;
      last = now;
      const left = Math.ceil(((now - start) / 1000) * (1 / share - 1));
      stream.write(`${stage}: ${Math.floor(100 * share)} %, ${left} s left\n`);
    },
    done: line.done,
  };
}

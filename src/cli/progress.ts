/** How long work may run before its progress is shown, and how often it is shown then. */
const quietMilliseconds = 1_000;
const redrawMilliseconds = 200;

/** Characters of the bar. */
const barLength = 24;

/** "[######------------------]": plain characters, which every terminal has. */
function bar(share: number): string {
  const done = Math.floor(barLength * Math.min(Math.max(share, 0), 1));
  return `[${'#'.repeat(done)}${'-'.repeat(barLength - done)}]`;
}

/** Shows the progress of named stages on stderr; `done` clears the line. */
export interface ProgressLine {
  readonly update: (stage: string, share: number) => void;
  readonly done: () => void;
}

/** Whether a line can be drawn again on a stream: a terminal, and not one that calls itself dumb. */
export function canRedraw(stream: NodeJS.WriteStream, environment = process.env): boolean {
  return stream.isTTY === true && environment['TERM'] !== 'dumb';
}

/**
 * A bar on a terminal's stderr, first shown after one second, with an estimate of the time left in the
 * stage. Writes nothing where a line cannot be drawn again.
 */
export function createProgressLine(
  stream: NodeJS.WriteStream = process.stderr,
  clock: () => number = () => performance.now(),
): ProgressLine {
  const start = clock();
  let stageName = '';
  let stageStart = start;
  let last = 0;
  let shown = false;
  return {
    update: (stage, share) => {
      if (!canRedraw(stream)) return;
      const now = clock();
      if (stage !== stageName) {
        if (stageName !== '') stageStart = now;
        stageName = stage;
      }
      if (now - start < quietMilliseconds || now - last < redrawMilliseconds) return;
      last = now;
      shown = true;
      const left = share > 0 ? ((now - stageStart) / 1000) * (1 / share - 1) : NaN;
      const estimate = Number.isFinite(left) ? `, ${Math.ceil(left)} s left` : '';
      const text = `${stage} ${bar(share)} ${Math.floor(100 * share)} %${estimate}`;
      stream.write(`\r\x1b[2K${text}`);
    },
    done: () => {
      if (shown) stream.write('\r\x1b[2K');
    },
  };
}

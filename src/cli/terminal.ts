/** The looks of a report at its destination. */
export interface TerminalLooks {
  /** Whether to use ANSI colours. */
  readonly color: boolean;
  /** Whether to draw lines of block characters. */
  readonly sparklines: boolean;
  /** Terminal columns that a report may take. */
  readonly columns: number;
}

/** Default number of columns, and the most that read well. */
const usualColumns = 80;
const mostColumns = 100;

/** An environment variable; undefined for an empty one, which counts as unset. */
function given(environment: NodeJS.ProcessEnv, name: string): string | undefined {
  const value = environment[name];
  return value === '' ? undefined : value;
}

/** Whether the locale (POSIX: LC_ALL, or else LC_CTYPE, or else LANG) or Windows Terminal has UTF-8. */
function hasUtf8(environment: NodeJS.ProcessEnv): boolean {
  const locale =
    given(environment, 'LC_ALL') ?? given(environment, 'LC_CTYPE') ?? given(environment, 'LANG');
  return locale === undefined
    ? given(environment, 'WT_SESSION') !== undefined
    : /utf-?8/i.test(locale);
}

/** The stream's columns; into a pipe those of COLUMNS, if that is a number. */
function columnsOf(stream: NodeJS.WriteStream, environment: NodeJS.ProcessEnv): number {
  const text = given(environment, 'COLUMNS') ?? '';
  const wished = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : usualColumns;
  return Math.min(stream.columns ?? wished, mostColumns);
}

/**
 * The looks of text on a stream. Colours and sparklines are for a terminal that does not call itself
 * dumb. FORCE_COLOR decides in its place: 0 is neither of them, anything else both. NO_COLOR (anything
 * but empty) takes the colours away, and FORCE_COLOR its say. Sparklines need UTF-8 too, unless they are
 * forced.
 */
export function terminalLooks(
  stream: NodeJS.WriteStream,
  environment = process.env,
): TerminalLooks {
  const noColor = given(environment, 'NO_COLOR') !== undefined;
  const force = noColor ? undefined : given(environment, 'FORCE_COLOR');
  const isTerminal = force === undefined ? canRedraw(stream, environment) : force !== '0';
  return {
    color: isTerminal && !noColor,
    sparklines: isTerminal && (force !== undefined || hasUtf8(environment)),
    columns: columnsOf(stream, environment),
  };
}

/** Time after which progress is shown, and the interval of updates. */
const quietMilliseconds = 1_000;
const redrawMilliseconds = 200;

/** Characters of the bar. */
const barLength = 24;

/** "[######------------------]": plain characters, which every terminal has. */
function bar(share: number): string {
  const done = Math.floor(barLength * Math.min(Math.max(share, 0), 1));
  return `[${'#'.repeat(done)}${'-'.repeat(barLength - done)}]`;
}

/** Seconds from which a time is given in minutes, and minutes from which it is given in hours. */
const mostSeconds = 120;
const mostMinutes = 120;

/** A time, rounded up: "90 s", "12 min", "3 h". */
function duration(seconds: number): string {
  if (seconds <= mostSeconds) return `${Math.ceil(seconds)} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes <= mostMinutes ? `${minutes} min` : `${Math.ceil(minutes / 60)} h`;
}

/** Shows the progress of named stages on stderr; `done` clears the line. */
export interface ProgressLine {
  readonly update: (stage: string, share: number) => void;
  readonly done: () => void;
}

/** Whether a line can be redrawn on a stream: a terminal that does not call itself dumb. */
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
      const estimate = Number.isFinite(left) ? `, ${duration(left)} left` : '';
      const text = `${stage} ${bar(share)} ${Math.floor(100 * share)} %${estimate}`;
      stream.write(`\r\x1b[2K${text}`);
    },
    done: () => {
      if (shown) stream.write('\r\x1b[2K');
    },
  };
}

/** Interval of progress lines where there is no terminal to redraw one on. */
const plainMilliseconds = 10_000;

/** Shows the progress of one long piece of work. */
export interface PeriodicProgress {
  readonly update: (share: number) => void;
  readonly done: () => void;
}

/**
 * Progress with an estimate of the time left on stderr: a redrawn line on a terminal, elsewhere (in a
 * log, say) a plain line every ten seconds, so that long work does not look dead.
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
      const left = ((now - start) / 1000) * (1 / share - 1);
      stream.write(`${stage}: ${Math.floor(100 * share)} %, ${duration(left)} left\n`);
    },
    done: line.done,
  };
}

/** Named stages in order, with the time that each takes beside the others. */
export type Stages = readonly (readonly [stage: string, weight: number])[];

/**
 * Computes the share of all stages that is done, which never falls: a stage contributes by its weight, and
 * those before it count as done when it begins.
 * @returns takes the share of a stage that is done; an unknown stage counts for nothing
 */
export function stagedShare(stages: Stages): (stage: string, share: number) => number {
  const total = stages.reduce((sum, [, weight]) => sum + weight, 0);
  let reached = 0;
  return (stage, share) => {
    let before = 0;
    for (const [known, weight] of stages) {
      if (known === stage) reached = Math.max(reached, (before + share * weight) / total);
      before += weight;
    }
    return reached;
  };
}

/** Shows the progress of work in named stages as that of one piece of work. */
export interface StagedProgress {
  /** @param share done share of the stage; an unknown stage counts for nothing */
  readonly update: (stage: string, share: number) => void;
  readonly done: () => void;
}

/** Progress of all stages as `stagedShare` computes it, shown as by `createPeriodicProgress`. */
export function createStagedProgress(
  name: string,
  stages: Stages,
  stream: NodeJS.WriteStream = process.stderr,
  clock: () => number = () => performance.now(),
): StagedProgress {
  const progress = createPeriodicProgress(name, stream, clock);
  const shareOf = stagedShare(stages);
  return {
    update: (stage, share) => progress.update(shareOf(stage, share)),
    done: progress.done,
  };
}

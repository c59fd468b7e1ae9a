import { toolVersion } from '../tool-version.js';
import { fileURLToPath } from 'node:url';
import { renderBenchmarks } from '../../report/text/index.js';
import { runBenchmarks, type BenchmarkResults } from '../../bench/index.js';
import type { BenchCommandOptions } from './options.js';
import { canRedraw } from '../terminal.js';
import { documentHead } from '../../jobs/index.js';
import { RequestError } from '../../request-error.js';
import { writeJson } from '../files/publish.js';

/** The JSON document of the results. */
function document(results: BenchmarkResults, seconds: number): object {
  return {
    ...documentHead('bench', toolVersion(), seconds),
    ...results,
  };
}

const clearLine = '\r\x1b[2K';

/** Shows the benchmark that runs, on a terminal. No estimate of the time left: they differ too much. */
function showProgress(name: string, done: number, total: number): void {
  if (canRedraw(process.stderr))
    process.stderr.write(`${clearLine}bench: ${done + 1} of ${total}, ${name}`);
}

/**
 * Runs `flashproof bench`: measures, prints and writes the results. A missed target is no failure.
 * Returns the exit status.
 * @throws RequestError when the JSON file cannot be written
 */
export async function runBench({
  json,
  only,
  quick = false,
  quiet,
}: BenchCommandOptions): Promise<number> {
  const start = performance.now();
  const commandLine = fileURLToPath(new URL('../main.js', import.meta.url));
  const results = await runBenchmarks({
    commandLine,
    quick,
    progress: showProgress,
    ...(only === undefined ? {} : { only }),
  });
  if (results.readings.length === 0)
    throw new RequestError(
      `no benchmark has "${only}" in its name; flashproof bench --quick lists the names of the usual ones`,
    );
  if (canRedraw(process.stderr)) process.stderr.write(clearLine);
  const seconds = (performance.now() - start) / 1000;
  if (json !== '-' && quiet !== true) process.stdout.write(renderBenchmarks(results));
  if (json !== undefined) await writeJson(json, document(results, seconds));
  return 0;
}

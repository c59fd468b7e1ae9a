import { isMainThread } from 'node:worker_threads';

/**
 * Imported before another program, says on standard error at that program's end how much memory its process had at
 * most, in bytes.
 */
if (isMainThread)
  process.on('exit', () => {
    process.stderr.write(`peak memory: ${process.resourceUsage().maxRSS * 1024}\n`);
  });

import { isMainThread } from 'node:worker_threads';

/** Prints, when imported before another program, that program's peak memory in bytes on standard error at its end. */
if (isMainThread)
  process.on('exit', () => {
    process.stderr.write(`peak memory: ${process.resourceUsage().maxRSS * 1024}\n`);
  });

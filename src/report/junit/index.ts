export { renderJunit } from './audit-junit.js';
export { renderCheckJunit } from './check-junit.js';

export { renderProfile } from './render-profile.js';
export { profileSketch } from './sketch.js';

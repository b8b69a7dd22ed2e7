import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './styles/theme.css';
import './styles/layout.css';
import './styles/controls.css';
import './styles/blocks.css';
import './styles/figures.css';
import './styles/runs.css';
import './styles/inspect.css';
import './styles/play.css';
import './styles/lab.css';
import { App } from './app';

render(<App />, document.getElementById('app')!);

import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './styles/theme.css';
import './styles/layout.css';
import './styles/components.css';
import './styles/figures.css';
import './styles/views.css';
import { App } from './app';

render(<App />, document.getElementById('app')!);

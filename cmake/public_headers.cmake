# The headers that are installed, by module. heed_headers: the API, which the reference describes. heed_internal_headers: what those include,
# for heed's own use. tests/structure/public_headers_test.cc checks that nothing is missing.
set(heed_headers_of_core
  autograd.h check.h copy.h device.h dry_run.h dtype.h interrupt.h isa.h memory.h parallel.h random.h shape.h tensor.h work_count.h)
set(heed_internal_headers_of_core api.h kernel.h module_work.h philox.h raw.h)
set(heed_internal_headers_of_cuda driver.h runtime.h)
set(heed_headers_of_ops activation.h elementwise.h ops.h packed_weight.h)
set(heed_headers_of_attention
  attention.h cache.h channel_attention.h linear_attention.h pooled_keys.h probabilities.h tap.h term_info.h terms.h terms/*.h)
set(heed_internal_headers_of_attention linear_attention_kernels.h score_block.h term.h term_files.h term_list.h)

set(heed_headers_of_io file.h image.h image_files.h json.h resize.h safetensors.h)
set(heed_internal_headers_of_io grey.h json_reader.h utf8.h)
set(heed_headers_of_text batches.h tokenizer.h train_vocabulary.h)
set(heed_internal_headers_of_text aligned.h char_set.h model.h string_table.h unicode.h vocabulary.h)
set(heed_headers_of_data augment.h idx.h image_data.h shapes.h synthetic_documents.h text_data.h)
set(heed_headers_of_nn
  decoder.h encoder.h feed_forward.h initializer.h linear.h mode.h multi_head.h params.h patches.h pooling.h position_table.h positions.h recurrent.h)
set(heed_headers_of_models
  answer.h architecture.h classify.h cost.h embed.h generate.h image_processor.h inspect.h model.h prune.h resolution.h sample.h text_model.h translate.h)
set(heed_internal_headers_of_models choices.h config.h config_keys.h)

set(heed_internal_headers_of_dist group.h)
set(heed_headers_of_train
  evaluate.h optimizer.h optimizer_step.h presets.h report.h run_folder.h settings.h task.h tasks.h train_options.h trainer.h training_job.h)
set(heed_internal_headers_of_train event_file.h owned_slices.h)

"""Learners of embeddings with many labels: EmbeddingClassifier and SkipGram."""
